//! A record of the journal: the row, and where its line is in the results.

use crate::row::RowHash;

/// The length of a record.
pub(crate) const RECORD_LEN: usize = 36;
/// The length of a record without its checksum.
const CHECKED_LEN: usize = RECORD_LEN - 4;

/// A record of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) row: u64,
    pub(crate) hash: RowHash,
    /// Whether the run succeeded.
    pub(crate) ok: bool,
    /// The position of the line in the results.
    pub(crate) offset: u64,
    /// The length of the line, with its line break.
    pub(crate) length: u32,
    /// The CRC-32 of the line, with its line break.
    pub(crate) line_crc: u32,
}

impl Record {
    /// Returns the position after the line.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }

    /// Appends the bytes of the record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.row.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        let hash = self.hash.to_u64();
        out.extend_from_slice(&low(hash).to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.line_crc.to_le_bytes());
        out.extend_from_slice(&(low(hash >> 32) << 1 | u32::from(self.ok)).to_le_bytes());
        let crc = crc32fast::hash(out.get(start..).unwrap_or_default());
        out.extend_from_slice(&crc.to_le_bytes());
    }

    /// Reads a record. None if its checksum is wrong.
    pub(crate) fn decode(bytes: &[u8; RECORD_LEN]) -> Option<Self> {
        let (checked, crc) = bytes.split_at_checked(CHECKED_LEN)?;
        if crc32fast::hash(checked).to_le_bytes() != *crc {
            return None;
        }
        let (row, rest) = checked.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (hash, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (line_crc, rest) = rest.split_first_chunk()?;
        let (rest, _) = rest.split_first_chunk()?;
        let rest = u32::from_le_bytes(*rest);
        let hash = u64::from(u32::from_le_bytes(*hash)) | u64::from(rest >> 1) << 32;
        Some(Self {
            row: u64::from_le_bytes(*row),
            hash: RowHash::from_u64(hash),
            ok: rest & 1 == 1,
            offset: u64::from_le_bytes(*offset),
            length: u32::from_le_bytes(*length),
            line_crc: u32::from_le_bytes(*line_crc),
        })
    }
}

/// Returns the lower half of a number.
#[expect(clippy::cast_possible_truncation, reason = "it is what is wanted")]
const fn low(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let hash = RowHash::from_bytes(b"row");
        Record { row: 1 << 40, hash, ok: true, offset: 1 << 50, length: 7, line_crc: 8 }
    }

    #[test]
    fn survives_its_way_through_bytes() {
        let mut bytes = Vec::new();
        record().encode(&mut bytes);
        assert_eq!(Record::decode(bytes.as_slice().try_into().unwrap()), Some(record()));
    }

    #[test]
    fn each_flipped_bit_is_noticed() {
        let mut bytes = Vec::new();
        record().encode(&mut bytes);
        for bit in 0..RECORD_LEN * 8 {
            let mut flipped: [u8; RECORD_LEN] = bytes.as_slice().try_into().unwrap();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(&flipped), None, "bit {bit}");
        }
        assert_eq!(Record::decode(&[0; RECORD_LEN]), None, "a block that was never written");
    }
}

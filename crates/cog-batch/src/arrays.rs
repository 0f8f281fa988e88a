//! Values of Arrow arrays as JSON.

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, StructArray,
    cast::AsArray as _,
    timezone::Tz,
    types::{
        ArrowTemporalType, ArrowTimestampType, Date32Type, Date64Type, Decimal32Type, Decimal64Type,
        Decimal128Type, Decimal256Type, DurationMicrosecondType, DurationMillisecondType,
        DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type,
        Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
        Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_schema::{DataType, TimeUnit};
use cog_json::{Value, Writer};
use thiserror::Error;

/// Why a value has no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// A number is NaN or infinite.
    #[error("the number is NaN or infinite")]
    NotFinite,
    /// Binary data where a string is needed.
    #[error("the binary data is not UTF-8")]
    NotUtf8,
    /// A date or time that the calendar does not have.
    #[error("the date or time is out of range")]
    OutOfRange,
    /// A key of a dictionary or a map is missing.
    #[error("a key is missing")]
    NoKey,
    /// The content of a media file that is of no known type.
    #[error("the media type of the content is unknown")]
    UnknownMedia,
    /// More than a row may have.
    #[error("the content is too large")]
    TooLarge,
    /// A type without JSON.
    #[error("the type is not supported")]
    Type,
}

type Written = Result<(), ArrayError>;

/// The maximum length of a string or of binary data: the maximum of a row.
const MAX_CELL: usize = 16 << 20;

/// Writes a value; null if it is missing.
pub(crate) fn write_value(array: &dyn Array, index: usize, w: &mut Writer<'_>) -> Written {
    if is_missing(array, index) {
        w.null();
        return Ok(());
    }
    match array.data_type() {
        DataType::Boolean => w.bool(array.as_boolean_opt().ok_or(ArrayError::Type)?.value(index)),
        DataType::List(_) => items(&array.as_list_opt::<i32>().ok_or(ArrayError::Type)?.value(index), w)?,
        DataType::LargeList(_) => {
            items(&array.as_list_opt::<i64>().ok_or(ArrayError::Type)?.value(index), w)?;
        }
        DataType::ListView(_) => {
            items(&array.as_list_view_opt::<i32>().ok_or(ArrayError::Type)?.value(index), w)?;
        }
        DataType::LargeListView(_) => {
            items(&array.as_list_view_opt::<i64>().ok_or(ArrayError::Type)?.value(index), w)?;
        }
        DataType::FixedSizeList(..) => {
            items(&array.as_fixed_size_list_opt().ok_or(ArrayError::Type)?.value(index), w)?;
        }
        DataType::Struct(_) => members(array.as_struct_opt().ok_or(ArrayError::Type)?, index, w)?,
        DataType::Map(..) => entries(&array.as_map_opt().ok_or(ArrayError::Type)?.value(index), w)?,
        DataType::Dictionary(..) => {
            let (values, key) = dictionary_value(array, index)?;
            write_value(values.as_ref(), key, w)?;
        }
        _ => return write_scalar(array, index, w),
    }
    Ok(())
}

/// Whether a value is missing: itself, or as the value of a dictionary. Neither an array of nulls nor a dictionary with null
/// values has a null bitmap.
pub(crate) fn is_missing(array: &dyn Array, index: usize) -> bool {
    match array.data_type() {
        DataType::Null => true,
        DataType::Dictionary(..) if !array.is_null(index) => {
            dictionary_value(array, index).is_ok_and(|(values, key)| is_missing(values.as_ref(), key))
        }
        _ => array.is_null(index),
    }
}

fn write_scalar(array: &dyn Array, index: usize, w: &mut Writer<'_>) -> Written {
    match array.data_type() {
        kind if kind.is_integer() => write_integer(array, index, w),
        DataType::Float16 => write_float(f64::from(primitive::<Float16Type>(array, index)?), w),
        // The shortest decimal of the float, not of the nearest one of 64 bits.
        DataType::Float32 => {
            let text = primitive::<Float32Type>(array, index)?.to_string();
            write_float(text.parse().unwrap_or(f64::NAN), w)
        }
        DataType::Float64 => write_float(primitive::<Float64Type>(array, index)?, w),
        kind if kind.is_decimal() => write_decimal(array, index, w),
        kind if kind.is_temporal() => {
            w.string(&temporal(array, index)?);
            Ok(())
        }
        _ => {
            w.string(text(array, index)?.unwrap_or_default());
            Ok(())
        }
    }
}

fn items(list: &ArrayRef, w: &mut Writer<'_>) -> Written {
    let mut written = Ok(());
    w.array(|w| written = (0..list.len()).try_for_each(|index| write_value(list.as_ref(), index, w)));
    written
}

/// Writes an object. Members that are null are absent.
fn members(array: &StructArray, index: usize, w: &mut Writer<'_>) -> Written {
    let mut written = Ok(());
    w.object(|w| {
        let mut members = array.fields().iter().zip(array.columns());
        written = members.try_for_each(|(field, column)| match is_missing(column.as_ref(), index) {
            true => Ok(()),
            false => write_value(column.as_ref(), index, w.key(field.name())),
        });
    });
    written
}

fn entries(entries: &StructArray, w: &mut Writer<'_>) -> Written {
    let [keys, values] = entries.columns() else { return Err(ArrayError::Type) };
    let mut written = Ok(());
    w.object(|w| {
        written = (0..entries.len()).try_for_each(|index| {
            let key = text(keys.as_ref(), index)?.ok_or(ArrayError::NoKey)?;
            write_value(values.as_ref(), index, w.key(key))
        });
    });
    written
}

/// Returns a string; none if it is null.
pub(crate) fn text(array: &dyn Array, index: usize) -> Result<Option<&str>, ArrayError> {
    if is_missing(array, index) {
        return Ok(None);
    }
    if matches!(array.data_type(), DataType::Dictionary(..)) {
        let (values, key) = dictionary_value(array, index)?;
        return text(values.as_ref(), key);
    }
    let bytes = bytes(array, index)?;
    std::str::from_utf8(bytes).map(Some).map_err(|_| ArrayError::NotUtf8)
}

/// Returns the bytes of a string or of binary data.
pub(crate) fn bytes(array: &dyn Array, index: usize) -> Result<&[u8], ArrayError> {
    let bytes = any_bytes(array, index).ok_or(ArrayError::Type)?;
    if bytes.len() > MAX_CELL { Err(ArrayError::TooLarge) } else { Ok(bytes) }
}

fn any_bytes(array: &dyn Array, index: usize) -> Option<&[u8]> {
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string_opt::<i32>()?.value(index).as_bytes(),
        DataType::LargeUtf8 => array.as_string_opt::<i64>()?.value(index).as_bytes(),
        DataType::Utf8View => array.as_string_view_opt()?.value(index).as_bytes(),
        DataType::Binary => array.as_binary_opt::<i32>()?.value(index),
        DataType::LargeBinary => array.as_binary_opt::<i64>()?.value(index),
        DataType::BinaryView => array.as_binary_view_opt()?.value(index),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary_opt()?.value(index),
        _ => return None,
    })
}

/// Returns the values of a dictionary, and the index of one.
pub(crate) fn dictionary_value(array: &dyn Array, index: usize) -> Result<(&ArrayRef, usize), ArrayError> {
    let dictionary = array.as_any_dictionary_opt().ok_or(ArrayError::Type)?;
    let keys = dictionary.keys();
    let key = match keys.data_type() {
        DataType::UInt64 => usize::try_from(primitive::<UInt64Type>(keys, index)?).ok(),
        _ => usize::try_from(signed(keys, index)?).ok(),
    };
    let values = dictionary.values();
    key.filter(|key| *key < values.len()).map(|key| (values, key)).ok_or(ArrayError::NoKey)
}

fn primitive<T: ArrowPrimitiveType>(array: &dyn Array, index: usize) -> Result<T::Native, ArrayError> {
    Ok(array.as_primitive_opt::<T>().ok_or(ArrayError::Type)?.value(index))
}

fn write_integer(array: &dyn Array, index: usize, w: &mut Writer<'_>) -> Written {
    match array.data_type() {
        DataType::UInt64 => w.item(&primitive::<UInt64Type>(array, index)?),
        _ => w.item(&signed(array, index)?),
    };
    Ok(())
}

fn signed(array: &dyn Array, index: usize) -> Result<i64, ArrayError> {
    Ok(match array.data_type() {
        DataType::Int8 => primitive::<Int8Type>(array, index)?.into(),
        DataType::Int16 => primitive::<Int16Type>(array, index)?.into(),
        DataType::Int32 => primitive::<Int32Type>(array, index)?.into(),
        DataType::Int64 => primitive::<Int64Type>(array, index)?,
        DataType::UInt8 => primitive::<UInt8Type>(array, index)?.into(),
        DataType::UInt16 => primitive::<UInt16Type>(array, index)?.into(),
        DataType::UInt32 => primitive::<UInt32Type>(array, index)?.into(),
        _ => return Err(ArrayError::Type),
    })
}

fn write_float(value: f64, w: &mut Writer<'_>) -> Written {
    if !value.is_finite() {
        return Err(ArrayError::NotFinite);
    }
    w.item(&value);
    Ok(())
}

/// Writes a decimal with all its digits.
fn write_decimal(array: &dyn Array, index: usize, w: &mut Writer<'_>) -> Written {
    let text = match array.data_type() {
        DataType::Decimal32(..) => {
            array.as_primitive_opt::<Decimal32Type>().map(|it| it.value_as_string(index))
        }
        DataType::Decimal64(..) => {
            array.as_primitive_opt::<Decimal64Type>().map(|it| it.value_as_string(index))
        }
        DataType::Decimal128(..) => {
            array.as_primitive_opt::<Decimal128Type>().map(|it| it.value_as_string(index))
        }
        DataType::Decimal256(..) => {
            array.as_primitive_opt::<Decimal256Type>().map(|it| it.value_as_string(index))
        }
        _ => None,
    };
    let number = text.and_then(|text| Value::parse(&text).ok()).ok_or(ArrayError::Type)?;
    w.node(number.node());
    Ok(())
}

/// Returns a date, time, timestamp or duration as ISO 8601 writes it.
fn temporal(array: &dyn Array, index: usize) -> Result<String, ArrayError> {
    let found = match array.data_type() {
        DataType::Date32 => date::<Date32Type>(array, index),
        DataType::Date64 => date::<Date64Type>(array, index),
        DataType::Time32(TimeUnit::Second) => time::<Time32SecondType>(array, index),
        DataType::Time32(_) => time::<Time32MillisecondType>(array, index),
        DataType::Time64(TimeUnit::Microsecond) => time::<Time64MicrosecondType>(array, index),
        DataType::Time64(_) => time::<Time64NanosecondType>(array, index),
        DataType::Timestamp(unit, zone) => match unit {
            TimeUnit::Second => timestamp::<TimestampSecondType>(array, index, zone.as_deref()),
            TimeUnit::Millisecond => timestamp::<TimestampMillisecondType>(array, index, zone.as_deref()),
            TimeUnit::Microsecond => timestamp::<TimestampMicrosecondType>(array, index, zone.as_deref()),
            TimeUnit::Nanosecond => timestamp::<TimestampNanosecondType>(array, index, zone.as_deref()),
        },
        DataType::Duration(unit) => return duration(array, *unit, index),
        _ => return Err(ArrayError::Type),
    };
    found.ok_or(ArrayError::OutOfRange)
}

fn date<T: ArrowPrimitiveType + ArrowTemporalType>(array: &dyn Array, index: usize) -> Option<String>
where
    i64: From<T::Native>,
{
    Some(array.as_primitive_opt::<T>()?.value_as_date(index)?.to_string())
}

fn time<T: ArrowPrimitiveType + ArrowTemporalType>(array: &dyn Array, index: usize) -> Option<String>
where
    i64: From<T::Native>,
{
    Some(array.as_primitive_opt::<T>()?.value_as_time(index)?.to_string())
}

/// A time zone with an offset keeps it; one with a name is converted to UTC.
fn timestamp<T: ArrowTimestampType>(array: &dyn Array, index: usize, zone: Option<&str>) -> Option<String> {
    let array = array.as_primitive_opt::<T>()?;
    let Some(zone) = zone else { return Some(format!("{:?}", array.value_as_datetime(index)?)) };
    match zone.parse::<Tz>().ok().filter(|_| zone != "+00:00") {
        Some(offset) => Some(array.value_as_datetime_with_tz(index, offset)?.to_rfc3339()),
        None => Some(format!("{:?}Z", array.value_as_datetime(index)?)),
    }
}

fn duration(array: &dyn Array, unit: TimeUnit, index: usize) -> Result<String, ArrayError> {
    let (count, per_second, digits) = match unit {
        TimeUnit::Second => (primitive::<DurationSecondType>(array, index)?, 1, 0),
        TimeUnit::Millisecond => (primitive::<DurationMillisecondType>(array, index)?, 1_000, 3),
        TimeUnit::Microsecond => (primitive::<DurationMicrosecondType>(array, index)?, 1_000_000, 6),
        TimeUnit::Nanosecond => (primitive::<DurationNanosecondType>(array, index)?, 1_000_000_000, 9),
    };
    let sign = if count < 0 { "-" } else { "" };
    let seconds = count.unsigned_abs() / per_second;
    let rest = count.unsigned_abs() % per_second;
    let fraction = format!(".{rest:0digits$}");
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    Ok(format!("{sign}PT{seconds}{fraction}S"))
}

#[cfg(test)]
mod tests;

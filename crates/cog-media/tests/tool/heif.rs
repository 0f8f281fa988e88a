//! Writes HEIF and AVIF files, box by box.

/// An item of a file: the kind, the data, and the properties, each a complete box.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) kind: [u8; 4],
    pub(crate) data: Vec<u8>,
    pub(crate) properties: Vec<Vec<u8>>,
}

/// Returns a box.
pub(crate) fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 8).unwrap();
    [&length.to_be_bytes()[..], kind, content].concat()
}

/// Returns the property that says how large a picture is.
pub(crate) fn size(width: u32, height: u32) -> Vec<u8> {
    boxed(b"ispe", &[[0; 4], width.to_be_bytes(), height.to_be_bytes()].concat())
}

/// Returns the property that rotates a picture anticlockwise by right angles.
pub(crate) fn rotated(turns: u8) -> Vec<u8> {
    boxed(b"irot", &[turns])
}

/// Returns the property that exchanges top and bottom (0), or left and right (1).
pub(crate) fn mirrored(axis: u8) -> Vec<u8> {
    boxed(b"imir", &[axis])
}

/// Returns the property that shows a part of a picture, whose centre is moved by the halves `right` and `down` of a
/// pixel.
pub(crate) fn cropped(width: u32, height: u32, right: i32, down: i32) -> Vec<u8> {
    let one = 1_u32.to_be_bytes();
    let two = 2_u32.to_be_bytes();
    let numbers = [width.to_be_bytes(), one, height.to_be_bytes(), one];
    let centre = [right.to_be_bytes(), two, down.to_be_bytes(), two];
    boxed(b"clap", &[numbers, centre].concat().concat())
}

/// Returns the item of a grid with a picture of this size.
pub(crate) fn grid(columns: u8, rows: u8, width: u16, height: u16, mut properties: Vec<Vec<u8>>) -> Item {
    let layout = [&[0, 0, rows - 1, columns - 1][..], &width.to_be_bytes(), &height.to_be_bytes()].concat();
    properties.insert(0, size(width.into(), height.into()));
    Item { kind: *b"grid", data: layout, properties }
}

/// A reference from an item to others.
pub(crate) struct Reference<'a> {
    pub(crate) kind: &'a [u8; 4],
    pub(crate) from: u16,
    pub(crate) to: &'a [u16],
}

/// Returns the property of a picture that is the transparency of another.
pub(crate) fn alpha() -> Vec<u8> {
    boxed(b"auxC", b"\0\0\0\0urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0")
}

/// Returns a file of these items, which are numbered from 1. The item `primary` is shown; `tiles` are its tiles, if it
/// is a grid. The data of grids are inside the description.
pub(crate) fn file(brand: &[u8; 4], items: &[Item], primary: u16, tiles: &[u16]) -> Vec<u8> {
    file_with(brand, items, primary, &Reference { kind: b"dimg", from: primary, to: tiles })
}

/// Returns a file of these items with a reference.
pub(crate) fn file_with(brand: &[u8; 4], items: &[Item], primary: u16, reference: &Reference<'_>) -> Vec<u8> {
    let head = boxed(b"ftyp", &[&brand[..], &[0; 4], &brand[..], b"mif1"].concat());
    let length = head.len() + meta(items, primary, reference, 0).len() + 8;
    let mut bytes = [head, meta(items, primary, reference, length)].concat();
    let data: Vec<u8> =
        items.iter().filter(|item| !is_grid(item)).flat_map(|item| item.data.clone()).collect();
    bytes.extend(boxed(b"mdat", &data));
    bytes
}

fn is_grid(item: &Item) -> bool {
    &item.kind == b"grid"
}

fn number(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap().to_be_bytes()
}

fn long(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_be_bytes()
}

/// Returns the description of the items, whose data begin at `data`.
fn meta(items: &[Item], primary: u16, reference: &Reference<'_>, mut data: usize) -> Vec<u8> {
    let (mut inside, mut infos) = (Vec::new(), Vec::new());
    let (mut places, mut all, mut maps) = (Vec::new(), Vec::new(), Vec::new());
    let mut properties = 0_u8;
    for (id, item) in (1..).zip(items) {
        let id = number(id);
        infos.extend(boxed(b"infe", &[&[2, 0, 0, 0][..], &id, &[0, 0], &item.kind, &[0]].concat()));
        let (method, from) = if is_grid(item) { (1, inside.len()) } else { (0, data) };
        let place = [&id[..], &[0, method, 0, 0, 0, 1], &long(from), &long(item.data.len())].concat();
        places.extend(place);
        if is_grid(item) {
            inside.extend(&item.data);
        } else {
            data += item.data.len();
        }
        all.extend(item.properties.concat());
        maps.extend(id);
        maps.push(u8::try_from(item.properties.len()).unwrap());
        for _ in &item.properties {
            properties += 1;
            maps.push(0x80 | properties);
        }
    }
    let count = number(items.len());
    let handler = [&[0; 8][..], b"pict", &[0; 13]].concat();
    let mut content = vec![0; 4];
    content.extend(boxed(b"hdlr", &handler));
    content.extend(boxed(b"pitm", &[&[0; 4][..], &primary.to_be_bytes()].concat()));
    content.extend(boxed(b"iloc", &[&[1, 0, 0, 0, 0x44, 0][..], &count, &places].concat()));
    content.extend(boxed(b"iinf", &[&[0; 4][..], &count, &infos].concat()));
    if !reference.to.is_empty() {
        let Reference { kind, from, to } = reference;
        let ids: Vec<u8> = to.iter().flat_map(|id| id.to_be_bytes()).collect();
        let reference = boxed(kind, &[&from.to_be_bytes()[..], &number(to.len()), &ids].concat());
        content.extend(boxed(b"iref", &[vec![0; 4], reference].concat()));
    }
    let maps = boxed(b"ipma", &[&[0; 4][..], &long(items.len()), &maps].concat());
    content.extend(boxed(b"iprp", &[boxed(b"ipco", &all), maps].concat()));
    content.extend(boxed(b"idat", &inside));
    boxed(b"meta", &content)
}

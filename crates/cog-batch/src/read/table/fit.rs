//! How the cells of a column become an input field.

use arrow_array::{Array, cast::AsArray as _};
use arrow_schema::{DataType, Field};
use cog_json::{Value, Writer};
use cog_schema::InputField;

use super::ColumnsError;
use crate::{
    arrays::{ArrayError, bytes, dictionary_value, is_missing, text, write_value},
    read::columns::media_source,
};

/// The maximum depth of a type, below that of JSON.
const MAX_DEPTH: usize = 64;

/// How a cell is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As the value that it is.
    Value,
    /// A text that is JSON.
    Json,
    /// A media file: its content, path, URL or source.
    Media,
    /// A list of media files.
    MediaList,
}

/// What JSON a type becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Null,
    Text,
    Binary,
    Number,
    Bool,
    Object,
    Array,
}

impl Form {
    /// Returns how the cells of a column are written as a field.
    pub(super) fn new(column: &Field, field: &InputField) -> Result<Self, ColumnsError> {
        let found = class(column.data_type(), 0).and_then(|class| choose(class, column.data_type(), field));
        found.ok_or_else(|| ColumnsError::Type {
            column: column.name().clone(),
            found: column.data_type().to_string(),
            field: field.name.clone(),
            expected: expected(field),
        })
    }
}

fn choose(class: Class, kind: &DataType, field: &InputField) -> Option<Form> {
    let types = field.types;
    let fits = match class {
        Class::Null => types.null || !field.is_required,
        Class::Text | Class::Binary => types.text,
        Class::Number => types.number,
        Class::Bool => types.boolean,
        Class::Object => types.object,
        Class::Array => types.array,
    };
    match class {
        _ if field.is_media && is_media(class, kind) => Some(Form::Media),
        Class::Array if field.is_list => {
            let item = item_type(kind)?;
            is_media(self::class(item, 1)?, item).then_some(Form::MediaList)
        }
        _ if fits || types.is_any() && !field.is_media => Some(Form::Value),
        Class::Text if (types.object || types.array) && !is_temporal(kind) => Some(Form::Json),
        _ => None,
    }
}

/// Whether values of a type can name or contain a media file.
fn is_media(class: Class, kind: &DataType) -> bool {
    matches!(class, Class::Text | Class::Binary | Class::Object) && !is_temporal(kind)
}

/// Whether JSON has the values of a type.
pub(super) fn is_supported(kind: &DataType) -> bool {
    class(kind, 0).is_some()
}

/// Whether all types within another one are supported.
fn are_supported<'a>(mut kinds: impl Iterator<Item = &'a DataType>, depth: usize) -> bool {
    depth < MAX_DEPTH && kinds.all(|kind| class(kind, depth + 1).is_some())
}

/// Returns what a type becomes; none if it is not supported.
fn class(kind: &DataType, depth: usize) -> Option<Class> {
    match kind {
        DataType::Null => Some(Class::Null),
        DataType::Boolean => Some(Class::Bool),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Class::Text),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Some(Class::Binary)
        }
        kind if kind.is_integer() || kind.is_floating() || kind.is_decimal() => Some(Class::Number),
        DataType::Interval(_) => None,
        kind if kind.is_temporal() => Some(Class::Text),
        DataType::Struct(members) => {
            are_supported(members.iter().map(|member| member.data_type()), depth).then_some(Class::Object)
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                let key = pair.first()?.data_type();
                let is_text = class(key, depth + 1) == Some(Class::Text) && !is_temporal(key);
                let kinds = pair.iter().map(|member| member.data_type());
                (is_text && are_supported(kinds, depth)).then_some(Class::Object)
            }
            _ => None,
        },
        DataType::Dictionary(_, values) => class(values, depth + 1).filter(|_| depth < MAX_DEPTH),
        list => are_supported(std::iter::once(item_type(list)?), depth).then_some(Class::Array),
    }
}

fn item_type(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item.data_type()),
        _ => None,
    }
}

fn is_temporal(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_temporal(values),
        kind => kind.is_temporal(),
    }
}

/// Describes what a field accepts.
fn expected(field: &InputField) -> String {
    let types = field.types;
    let names = [
        (field.is_media, "a media file"),
        (types.text, "a string"),
        (types.number, "a number"),
        (types.boolean, "a boolean"),
        (types.object && !field.is_media, "an object"),
        (types.array || field.is_list, "a list"),
        (types.is_any() && !field.is_media, "a value that JSON has"),
    ];
    let names: Vec<_> = names.iter().filter(|(applies, _)| *applies).map(|(_, name)| *name).collect();
    names.join(" or ")
}

type Written = Result<(), ArrayError>;

/// Writes a cell as its field. A null cell adds no field.
pub(super) fn write_cell(
    cells: &dyn Array,
    index: usize,
    form: Form,
    field: &InputField,
    w: &mut Writer<'_>,
) -> Written {
    if is_missing(cells, index) {
        return Ok(());
    }
    let name = field.name.as_str();
    match form {
        Form::Value => write_value(cells, index, w.key(name)),
        Form::Json => {
            let text = text(cells, index)?.unwrap_or_default();
            match Value::parse(text) {
                Ok(value) => w.field(name, &value),
                // The check of the input names its field.
                Err(_) => w.field(name, text),
            };
            Ok(())
        }
        Form::Media if field.is_list => {
            let mut written = Ok(());
            w.key(name).array(|w| written = write_media(cells, index, w));
            written
        }
        Form::Media => write_media(cells, index, w.key(name)),
        Form::MediaList => write_media_list(cells, index, w.key(name)),
    }
}

fn write_media_list(cells: &dyn Array, index: usize, w: &mut Writer<'_>) -> Written {
    let list = match cells.data_type() {
        DataType::List(_) => cells.as_list_opt::<i32>().map(|it| it.value(index)),
        DataType::LargeList(_) => cells.as_list_opt::<i64>().map(|it| it.value(index)),
        DataType::ListView(_) => cells.as_list_view_opt::<i32>().map(|it| it.value(index)),
        DataType::LargeListView(_) => cells.as_list_view_opt::<i64>().map(|it| it.value(index)),
        _ => cells.as_fixed_size_list_opt().map(|it| it.value(index)),
    };
    let list = list.ok_or(ArrayError::Type)?;
    let mut written = Ok(());
    w.array(|w| {
        let mut present = (0..list.len()).filter(|item| !is_missing(list.as_ref(), *item));
        written = present.try_for_each(|item| write_media(list.as_ref(), item, w));
    });
    written
}

/// Writes the source of a media file: of its content, of its path or URL, or as it is.
fn write_media(cells: &dyn Array, index: usize, w: &mut Writer<'_>) -> Written {
    match cells.data_type() {
        DataType::Dictionary(..) => {
            let (values, key) = dictionary_value(cells, index)?;
            write_media(values.as_ref(), key, w)
        }
        DataType::Struct(_) => write_media_struct(cells, index, w),
        DataType::Map(..) => write_value(cells, index, w),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let text = text(cells, index)?.unwrap_or_default();
            match Value::parse(text).ok().filter(|_| text.starts_with('{')) {
                Some(source) => w.item(&source),
                None => w.item(&media_source(text)),
            };
            Ok(())
        }
        _ => write_content(bytes(cells, index)?, w),
    }
}

/// A struct of `bytes` and `path`, as datasets store media, is its bytes, otherwise its path. Another one is the source.
fn write_media_struct(cells: &dyn Array, index: usize, w: &mut Writer<'_>) -> Written {
    let members = cells.as_struct_opt().ok_or(ArrayError::Type)?;
    let member =
        |name: &str| members.column_by_name(name).filter(|column| !is_missing(column.as_ref(), index));
    let content = member("bytes").map(|column| bytes(column.as_ref(), index));
    let content = content.filter(|found| *found != Err(ArrayError::Type)).transpose()?;
    match (members.column_by_name("type"), content, member("path")) {
        (None, Some(content), _) => write_content(content, w),
        (None, None, Some(path)) => write_media(path.as_ref(), index, w),
        _ => write_value(cells, index, w),
    }
}

fn write_content(content: &[u8], w: &mut Writer<'_>) -> Written {
    let media_type = cog_run::sniff(content).ok_or(ArrayError::UnknownMedia)?;
    w.object(|w| {
        w.field("type", "base64").field("media_type", media_type);
        w.field("data", &base64_simd::STANDARD.encode_to_string(content));
    });
    Ok(())
}

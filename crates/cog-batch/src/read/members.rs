//! Rows that are JSON: their parser, and the members that become input fields or go to the result.

use std::{collections::BTreeSet, sync::Arc};

use cog_json::{Kind, Limits, SyntaxError, SyntaxErrorKind, Value, Writer};
use cog_schema::Contract;

use super::{ColumnMap, ColumnsError, json_lines::text_of};
use crate::{ParsedRow, RowErrorKind, RowParser, row::MAX_LINE};

/// What becomes of the members of a row.
#[derive(Debug)]
pub(super) struct Members {
    map: ColumnMap,
    /// The names of the input fields; none if the input may have any.
    fields: BTreeSet<String>,
}

impl Members {
    /// Returns none if each row is its input as it is.
    ///
    /// # Errors
    /// A member is mapped to a field that the input does not have.
    pub(super) fn new(contract: &Contract, map: &ColumnMap) -> Result<Option<Self>, ColumnsError> {
        if !map.changes_rows() {
            return Ok(None);
        }
        let fields: Vec<String> = contract.input_fields().iter().map(|field| field.name.clone()).collect();
        map.check_fields(&fields)?;
        Ok(Some(Self { map: map.clone(), fields: fields.into_iter().collect() }))
    }

    /// Divides a row into its input and what its result gets. A row that is a string has no members.
    fn apply(&self, row: Value) -> ParsedRow {
        if !row.is_object() {
            return ParsedRow { input: row, carried: self.map.carried().none() };
        }
        let mut input = String::new();
        Writer::compact(&mut input).object(|w| {
            for (name, value) in row.members() {
                let field = self.map.field_of(name);
                if self.is_input(name, field) {
                    w.key(field).node(value);
                }
            }
        });
        let carried = self.map.carried().write(|name, w| match row.get(name) {
            Some(value) => w.node(value),
            None => w.null(),
        });
        // The text was written from a value, so it is JSON.
        ParsedRow { input: Value::parse(&input).unwrap_or_default(), carried }
    }

    /// Whether a member is part of the input. One that is no field stays, so that the check of the input names it, unless it is
    /// ignored or goes to the result only.
    fn is_input(&self, name: &str, field: &str) -> bool {
        let is_field = self.fields.contains(field) || field != name;
        is_field || !(self.map.ignore_unknown && !self.fields.is_empty() || self.map.carried().contains(name))
    }
}

/// Returns the parser of rows that are JSON.
pub(super) fn parser(members: Option<Members>) -> Arc<RowParser> {
    Arc::new(move |text: &[u8]| {
        let row = parse(text)?;
        Ok(match &members {
            Some(members) => members.apply(row),
            None => ParsedRow { input: row, carried: String::new() },
        })
    })
}

/// Parses a row.
fn parse(text: &[u8]) -> Result<Value, RowErrorKind> {
    let value = Value::parse_within(text, Limits::default().with_bytes(MAX_LINE as u64));
    let value = value.map_err(|error| not_json(text, &error))?;
    match value.node().kind() {
        Kind::Object | Kind::String => Ok(value),
        Kind::Array => Err(RowErrorKind::NotAnInput { found: "an array" }),
        Kind::Number => Err(RowErrorKind::NotAnInput { found: "a number" }),
        Kind::Bool => Err(RowErrorKind::NotAnInput { found: "a boolean" }),
        Kind::Null => Err(RowErrorKind::NotAnInput { found: "null" }),
    }
}

/// Returns what is wrong with a row that cannot be parsed.
fn not_json(row: &[u8], error: &SyntaxError) -> RowErrorKind {
    let text = match text_of(row) {
        Ok(text) => text,
        Err(kind) => return kind,
    };
    let reason = match error.kind() {
        SyntaxErrorKind::TooDeep => "nested too deeply".to_owned(),
        kind => kind.to_string(),
    };
    RowErrorKind::NotJson { column: error.position(text).column, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(map: ColumnMap, fields: &[&str], row: &str) -> (String, String) {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        let parsed = Members { map, fields }.apply(Value::parse(row).unwrap());
        (parsed.input.to_string(), parsed.carried)
    }

    #[test]
    fn members_are_mapped_ignored_and_carried() {
        let map = ColumnMap {
            fields: vec![("text".to_owned(), "question".to_owned())],
            ignore_unknown: true,
            id: Some("id".to_owned()),
            keep: vec!["url".to_owned(), "count".to_owned()],
            ..ColumnMap::default()
        };
        let row = r#"{"id": 7, "question": "why", "count": 2, "url": "x", "other": [1]}"#;
        let (input, carried) = apply(map.clone(), &["text", "count"], row);
        assert_eq!(input, r#"{"text":"why","count":2}"#);
        assert_eq!(carried, r#""id":7,"kept":{"url":"x","count":2}"#);
        let (input, carried) = apply(map.clone(), &["text", "count"], "\"a string\"");
        assert_eq!(
            (input.as_str(), carried.as_str()),
            ("\"a string\"", r#""id":null,"kept":{"url":null,"count":null}"#)
        );
        let strict = ColumnMap { ignore_unknown: false, ..map };
        assert_eq!(apply(strict.clone(), &["text"], row).0, r#"{"text":"why","other":[1]}"#);
        // A module whose input may have any members gets all but the carried ones.
        assert_eq!(apply(strict, &[], row).0, r#"{"text":"why","other":[1]}"#);
    }
}

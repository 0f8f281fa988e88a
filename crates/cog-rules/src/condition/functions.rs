//! The functions of conditions: their names, and what they accept.

use std::ops::Range;

use super::{
    Comparison, Computed, ComputedKind, Content, Expression, List, Literal, Operand, Test, TestKind,
    parser::{Parsed, truth},
    time::{self, DurationError},
};
use crate::{
    cursor::TextError,
    path::{ListPath, PathRoot},
};

/// Declares the functions: variant, name, form.
macro_rules! functions {
    ($($variant:ident $name:literal $form:literal;)+) => {
        /// A function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function { $($variant),+ }

        impl Function {
            const ALL: &'static [Function] = &[$(Function::$variant),+];

            pub(crate) const fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),+ }
            }

            /// Returns an example of a call.
            const fn form(self) -> &'static str {
                match self { $(Function::$variant => $form),+ }
            }
        }
    };
}

functions! {
    Exists "exists" "exists($.x)";
    All "all" "all($.items[*], @.price > 0)";
    Any "any" "any($.items[*], @.price > 0)";
    Count "count" "count($.items[*])";
    Sum "sum" "sum($.items[*].price)";
    Min "min" "min($.items[*].price)";
    Max "max" "max($.items[*].price)";
    Length "length" "length($.name)";
    Abs "abs" "abs($.a - $.b)";
    Unique "unique" "unique($.items[*].name)";
    Sorted "sorted" "sorted($.events[*].date)";
    Contains "contains" "contains($.text, 'part')";
    Starts "starts" "starts($.text, 'part')";
    Ends "ends" "ends($.text, 'part')";
    Close "close" "close($.a, $.b, 0.01)";
    Date "date" "date($.day)";
    Duration "duration" "duration('P30D')";
}

/// What authors write for a function.
const SYNONYMS: [(&str, &str); 15] = [
    ("len", "length"),
    ("size", "length"),
    ("total", "sum"),
    ("every", "all"),
    ("forall", "all"),
    ("some", "any"),
    ("distinct", "unique"),
    ("startswith", "starts"),
    ("starts_with", "starts"),
    ("endswith", "ends"),
    ("ends_with", "ends"),
    ("includes", "contains"),
    ("isclose", "close"),
    ("datetime", "date"),
    ("minimum", "min"),
];

impl Function {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|function| function.name() == name)
    }

    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|function| function.name())
    }

    pub(crate) fn synonym(name: &str) -> Option<&'static str> {
        let lower = name.to_ascii_lowercase();
        SYNONYMS.iter().find(|(synonym, _)| *synonym == lower).map(|(_, name)| *name)
    }

    /// Returns whether its second argument is a condition about the elements of its first.
    pub(super) const fn tests_elements(self) -> bool {
        matches!(self, Function::All | Function::Any | Function::Count)
    }
}

/// A call, once its arguments are parsed.
pub(super) struct Call {
    pub(super) function: Function,
    /// The byte range of the name.
    pub(super) name: Range<usize>,
    pub(super) arguments: Vec<(Range<usize>, Parsed)>,
    /// The byte range of all of it.
    pub(super) range: Range<usize>,
    /// A free slot.
    pub(super) slot: usize,
    /// Whether it is evaluated for each element of a list.
    pub(super) is_repeated: bool,
}

impl Call {
    /// Returns what the call is.
    ///
    /// # Errors
    /// When it has the wrong arguments.
    pub(super) fn build(mut self) -> Result<Parsed, TextError> {
        let mut arguments = std::mem::take(&mut self.arguments).into_iter();
        let mut next = || arguments.next();
        let parsed = match self.function {
            Function::Exists => self.exists(next())?,
            Function::All => {
                let list = self.list(next())?;
                self.test(TestKind::All(list, self.condition(next())?))
            }
            Function::Any => {
                let list = self.list(next())?;
                self.test(TestKind::Any(list, self.condition(next())?))
            }
            Function::Count => {
                let list = self.list(next())?;
                let condition = next().map(|argument| self.condition(Some(argument))).transpose()?;
                self.value(ComputedKind::Count(list, condition))
            }
            Function::Sum => self.value(ComputedKind::Total(self.list(next())?)),
            Function::Min | Function::Max => {
                let is_max = self.function == Function::Max;
                let first = next();
                let second = next();
                if second.is_none() {
                    self.value(ComputedKind::Extreme(is_max, self.list(first)?))
                } else {
                    let all = [first, second].into_iter().flatten().chain(std::iter::from_fn(&mut next));
                    let operands: Result<_, _> = all.map(|argument| self.operand(Some(argument))).collect();
                    self.value(ComputedKind::ExtremeOf(is_max, operands?))
                }
            }
            Function::Length => self.value(ComputedKind::Length(self.operand(next())?)),
            Function::Abs => self.value(ComputedKind::Abs(self.operand(next())?)),
            Function::Unique => self.test(TestKind::Unique(self.list(next())?)),
            Function::Sorted => self.test(TestKind::Sorted(self.list(next())?)),
            Function::Contains => match next() {
                Some((range, Parsed::List(path))) => {
                    let list = List { range, path };
                    self.test(TestKind::Lists(list, self.operand(next())?))
                }
                first => {
                    let whole = self.operand(first)?;
                    self.test(TestKind::Contains(whole, self.operand(next())?))
                }
            },
            Function::Starts => {
                let whole = self.operand(next())?;
                self.test(TestKind::Starts(whole, self.operand(next())?))
            }
            Function::Ends => {
                let whole = self.operand(next())?;
                self.test(TestKind::Ends(whole, self.operand(next())?))
            }
            Function::Close => {
                let left = self.operand(next())?;
                let right = self.operand(next())?;
                self.test(TestKind::Close(left, right, self.operand(next())?))
            }
            Function::Date => self.value(ComputedKind::Date(self.date(next())?)),
            Function::Duration => self.value(ComputedKind::Duration(self.duration(next())?)),
        };
        match arguments.next() {
            Some((range, _)) => {
                Err(self.wrong(range, format!("`{}` has too many arguments", self.function.name())))
            }
            None => Ok(parsed),
        }
    }

    fn exists(&self, argument: Option<(Range<usize>, Parsed)>) -> Result<Parsed, TextError> {
        let form =
            |range| TextError::new(range, "expected a path in parentheses").suggest("Write `exists($.x)`.");
        match argument {
            Some((_, Parsed::Value(operand)))
                if matches!(operand.content, Content::Path(_) | Content::Length(_)) =>
            {
                Ok(Parsed::Condition(Expression::Exists(operand)))
            }
            // At least one value.
            Some((range, Parsed::List(path))) => {
                let Parsed::Value(count) = self.value(ComputedKind::Count(List { range, path }, None)) else {
                    return Err(form(self.name.clone()));
                };
                let none = Content::Literal(Literal::new(cog_json::Value::from(serde_json::Value::from(0))));
                let none = Operand { range: self.name.clone(), content: none };
                Ok(Parsed::Condition(Expression::Compare(count, Comparison::Greater, none)))
            }
            Some((range, _)) => Err(form(range)),
            None => Err(form(self.name.clone())),
        }
    }

    fn list(&self, argument: Option<(Range<usize>, Parsed)>) -> Result<List, TextError> {
        match argument {
            Some((range, Parsed::List(path))) => Ok(List { range, path }),
            Some((range, Parsed::Value(operand))) if matches!(operand.content, Content::Path(_)) => {
                match &operand.content {
                    Content::Path(path) => Ok(List { range, path: ListPath::from(path) }),
                    _ => Err(self.wrong(range, "expected the path of a list".to_owned())),
                }
            }
            Some((range, _)) => Err(self.wrong(range, "expected the path of a list".to_owned())),
            None => Err(self.missing("the path of a list")),
        }
    }

    fn condition(&self, argument: Option<(Range<usize>, Parsed)>) -> Result<Expression, TextError> {
        match argument {
            Some((_, Parsed::Condition(expression))) => Ok(expression),
            Some((_, Parsed::Value(operand))) => truth(operand),
            Some((range, Parsed::List(_))) => Err(self.wrong(range, "expected a condition".to_owned())),
            None => Err(self.missing("a condition about the elements, which are `@`")),
        }
    }

    fn operand(&self, argument: Option<(Range<usize>, Parsed)>) -> Result<Operand, TextError> {
        match argument {
            Some((_, Parsed::Value(operand))) => Ok(operand),
            Some((range, Parsed::List(_))) => Err(several(range)),
            Some((range, Parsed::Condition(_))) => {
                Err(self.wrong(range, "expected a value, not a condition".to_owned()))
            }
            None => Err(self.missing("a value")),
        }
    }

    /// Returns the text of a date. A literal must be one.
    fn date(&self, argument: Option<(Range<usize>, Parsed)>) -> Result<Operand, TextError> {
        let operand = self.operand(argument)?;
        match literal_text(&operand) {
            Some(text) if time::date(text).is_none() => {
                let error = TextError::new(operand.range, "not a date of ISO 8601");
                Err(error.suggest("Write `'2026-01-31'`, or `'2026-01-31T09:30:00Z'`."))
            }
            _ => Ok(operand),
        }
    }

    /// Returns the text of a duration. A literal must be one.
    fn duration(&self, argument: Option<(Range<usize>, Parsed)>) -> Result<Operand, TextError> {
        let operand = self.operand(argument)?;
        let Some(error) = literal_text(&operand).and_then(|text| time::duration(text).err()) else {
            return Ok(operand);
        };
        Err(match error {
            DurationError::Form => TextError::new(operand.range, "not a duration of ISO 8601")
                .suggest("Write `'P30D'` for days, or `'PT1H30M'` for hours and minutes."),
            DurationError::Calendar => TextError::new(operand.range, "years and months have no fixed length")
                .suggest("Write days: `'P365D'`, `'P30D'`."),
        })
    }

    fn test(&self, kind: TestKind) -> Parsed {
        let is_kept = match &kind {
            TestKind::All(list, _)
            | TestKind::Any(list, _)
            | TestKind::Unique(list)
            | TestKind::Sorted(list) => self.is_repeated && list.path.root == PathRoot::Document,
            TestKind::Lists(list, _) => list.path.root == PathRoot::Document,
            _ => false,
        };
        let slot = is_kept.then_some(self.slot);
        Parsed::Condition(Expression::Test(Box::new(Test { range: self.range.clone(), kind, slot })))
    }

    fn value(&self, kind: ComputedKind) -> Parsed {
        let is_kept = match &kind {
            ComputedKind::Total(list) | ComputedKind::Count(list, _) | ComputedKind::Extreme(_, list) => {
                self.is_repeated && list.path.root == PathRoot::Document
            }
            _ => false,
        };
        let computed = Computed { kind, slot: is_kept.then_some(self.slot) };
        Parsed::Value(Operand { range: self.range.clone(), content: Content::Computed(Box::new(computed)) })
    }

    fn wrong(&self, range: Range<usize>, message: String) -> TextError {
        TextError::new(range, message).suggest(format!("Write `{}`.", self.function.form()))
    }

    fn missing(&self, what: &str) -> TextError {
        self.wrong(self.range.clone(), format!("`{}` needs {what}", self.function.name()))
    }
}

fn literal_text(operand: &Operand) -> Option<&str> {
    match &operand.content {
        Content::Literal(value) => value.as_str(),
        _ => None,
    }
}

/// Returns the error for a path to several values where one is needed.
pub(super) fn several(range: Range<usize>) -> TextError {
    TextError::new(range, "the path selects several values")
        .suggest("Test them with `all` or `any`, or use `count`, `sum`, `min` or `max`.")
}

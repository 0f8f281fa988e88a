//! Parses a condition by the precedence of its operators: `||`, `&&`, comparisons, `+ -`, `* /`.

use std::{ops::Range, vec::IntoIter};

use super::{
    Computed, ComputedKind, Content, Expression, Operand,
    functions::{Call, Function, several},
    tokens::{Kind, Token, tokens},
};
use crate::{
    cursor::TextError,
    path::{ListPath, PathRoot},
};

/// The maximum length of a condition, in bytes.
pub(super) const MAX_LENGTH: usize = 4096;
/// The maximum nesting of parentheses, functions and negations.
const MAX_DEPTH: usize = 32;

/// Parses a complete condition.
pub(super) fn parse(text: &str) -> Result<Expression, TextError> {
    if text.len() > MAX_LENGTH {
        let message = format!("the condition has {} bytes; the maximum is {MAX_LENGTH}", text.len());
        return Err(TextError::new(0..0, message).suggest("Split it into several steps or rules."));
    }
    let end = text.trim_end().len();
    let tokens = tokens(text)?.into_iter();
    let mut parser = Parser { tokens, end: end..end, at: 0..0, slots: 0, nested: 0 };
    let expression = parser.condition(0)?;
    match parser.next() {
        None => Ok(expression),
        Some(Token { range, kind: Kind::Close }) => Err(TextError::new(range, "this `)` closes nothing")),
        Some(token) => Err(TextError::new(token.range, "expected `&&`, `||` or a comparison")),
    }
}

/// A part of a condition before it is known what it is used for.
#[derive(Debug)]
pub(super) enum Parsed {
    Condition(Expression),
    Value(Operand),
    List(ListPath),
}

struct Parser {
    tokens: IntoIter<Token>,
    /// The range for an error at the end.
    end: Range<usize>,
    /// The range of the last token.
    at: Range<usize>,
    /// The number of slots that calls have taken.
    slots: usize,
    /// The number of open conditions about elements.
    nested: usize,
}

impl Parser {
    /// Parses a condition.
    fn condition(&mut self, depth: usize) -> Result<Expression, TextError> {
        let (range, parsed) = self.any(depth)?;
        as_condition(range, parsed)
    }

    /// Parses `a || b`.
    fn any(&mut self, depth: usize) -> Result<(Range<usize>, Parsed), TextError> {
        let (range, first) = self.all(depth)?;
        if !matches!(self.peek(), Some(Kind::Or)) {
            return Ok((range, first));
        }
        let mut parts = vec![as_condition(range.clone(), first)?];
        while matches!(self.peek(), Some(Kind::Or)) {
            self.next();
            let (range, part) = self.all(depth)?;
            parts.push(as_condition(range, part)?);
        }
        Ok((range.start..self.at.end, Parsed::Condition(Expression::Any(parts))))
    }

    /// Parses `a && b`.
    fn all(&mut self, depth: usize) -> Result<(Range<usize>, Parsed), TextError> {
        let (range, first) = self.comparison(depth)?;
        if !matches!(self.peek(), Some(Kind::And)) {
            return Ok((range, first));
        }
        let mut parts = vec![as_condition(range.clone(), first)?];
        while matches!(self.peek(), Some(Kind::And)) {
            self.next();
            let (range, part) = self.comparison(depth)?;
            parts.push(as_condition(range, part)?);
        }
        Ok((range.start..self.at.end, Parsed::Condition(Expression::All(parts))))
    }

    /// Parses a negation, or a value with its comparison.
    fn comparison(&mut self, depth: usize) -> Result<(Range<usize>, Parsed), TextError> {
        if matches!(self.peek(), Some(Kind::Not)) {
            return self.negation(depth);
        }
        let (range, left) = self.sum(depth)?;
        let Some(Kind::Comparison(comparison)) = self.peek() else { return Ok((range, left)) };
        let comparison = *comparison;
        let left = match left {
            Parsed::Condition(_) => return self.refuse_comparison().map(|()| (range, left)),
            left => as_value(range.clone(), left)?,
        };
        self.next();
        let right = match self.peek() {
            Some(Kind::Operand(_) | Kind::List(_) | Kind::Call(_) | Kind::Open | Kind::Minus) => {
                self.sum(depth)?
            }
            _ => {
                let at = self.next().map_or(self.end.clone(), |token| token.range);
                return Err(TextError::new(at, "expected a value after the comparison"));
            }
        };
        let right = as_value(right.0, right.1)?;
        self.refuse_comparison()?;
        let range = range.start..self.at.end;
        Ok((range, Parsed::Condition(Expression::Compare(left, comparison, right))))
    }

    /// Parses what `!` negates: a group, a function, a negation or a value, but no comparison.
    fn negation(&mut self, depth: usize) -> Result<(Range<usize>, Parsed), TextError> {
        let start = self.next().map(|token| token.range).unwrap_or_default();
        check_depth(depth, &start)?;
        let (range, inner) = match self.peek() {
            Some(Kind::Not) => self.negation(depth + 1)?,
            _ => self.primary(depth + 1)?,
        };
        if let Some(Kind::Comparison(_)) = self.peek() {
            return match inner {
                Parsed::Condition(_) => self.refuse_comparison().map(|()| (range, inner)),
                _ => Err(TextError::new(range, "`!` negates a value, not a comparison")
                    .suggest("Write `!(…)` around the comparison.")),
            };
        }
        let inner = as_condition(range, inner)?;
        Ok((start.start..self.at.end, Parsed::Condition(Expression::Not(Box::new(inner)))))
    }

    /// Parses `a + b - c`.
    fn sum(&mut self, depth: usize) -> Result<(Range<usize>, Parsed), TextError> {
        let (range, first) = self.product(depth)?;
        if !matches!(self.peek(), Some(Kind::Plus | Kind::Minus)) {
            return Ok((range, first));
        }
        let mut parts = vec![(false, as_value(range.clone(), first)?)];
        while let Some(Kind::Plus | Kind::Minus) = self.peek() {
            let is_subtracted = matches!(self.next(), Some(Token { kind: Kind::Minus, .. }));
            let (range, part) = self.product(depth)?;
            parts.push((is_subtracted, as_value(range, part)?));
        }
        Ok(self.computed(range.start, ComputedKind::Sum(parts)))
    }

    /// Parses `a * b / c`.
    fn product(&mut self, depth: usize) -> Result<(Range<usize>, Parsed), TextError> {
        let (range, first) = self.signed(depth)?;
        if !matches!(self.peek(), Some(Kind::Times | Kind::Over)) {
            return Ok((range, first));
        }
        let mut parts = vec![(false, as_value(range.clone(), first)?)];
        while let Some(Kind::Times | Kind::Over) = self.peek() {
            let divides = matches!(self.next(), Some(Token { kind: Kind::Over, .. }));
            let (range, part) = self.signed(depth)?;
            parts.push((divides, as_value(range, part)?));
        }
        Ok(self.computed(range.start, ComputedKind::Product(parts)))
    }

    /// Parses a value with an optional minus sign.
    fn signed(&mut self, depth: usize) -> Result<(Range<usize>, Parsed), TextError> {
        if !matches!(self.peek(), Some(Kind::Minus)) {
            return self.primary(depth);
        }
        let start = self.next().map(|token| token.range).unwrap_or_default();
        check_depth(depth, &start)?;
        let (range, part) = self.signed(depth + 1)?;
        let part = as_value(range, part)?;
        Ok(self.computed(start.start, ComputedKind::Sum(vec![(true, part)])))
    }

    fn computed(&self, start: usize, kind: ComputedKind) -> (Range<usize>, Parsed) {
        let range = start..self.at.end;
        let content = Content::Computed(Box::new(Computed { kind, slot: None }));
        (range.clone(), Parsed::Value(Operand { range, content }))
    }

    /// Parses a value, a path, a function or a group.
    fn primary(&mut self, depth: usize) -> Result<(Range<usize>, Parsed), TextError> {
        let Some(Token { range, kind }) = self.next() else {
            return Err(TextError::new(self.end.clone(), "the condition ends here; expected a value"));
        };
        match kind {
            Kind::Open => {
                check_depth(depth, &range)?;
                let (_, inner) = self.any(depth + 1)?;
                self.close(range.clone())?;
                let range = range.start..self.at.end;
                let inner = match inner {
                    // With its parentheses, so that messages show them.
                    Parsed::Value(operand) => Parsed::Value(Operand { range: range.clone(), ..operand }),
                    inner => inner,
                };
                Ok((range, inner))
            }
            Kind::Call(function) => self.call(function, range, depth),
            Kind::Operand(content) => {
                if let Content::Path(path) | Content::Length(path) = &content {
                    self.check_item(path.root(), &range)?;
                }
                Ok((range.clone(), Parsed::Value(Operand { range, content })))
            }
            Kind::List(path) => {
                self.check_item(path.root, &range)?;
                Ok((range, Parsed::List(path)))
            }
            Kind::Close => Err(TextError::new(range, "expected a value before `)`")),
            Kind::Not => Err(TextError::new(range, "`!` negates a condition, not a value")),
            _ => Err(TextError::new(range, "expected a value before this operator")),
        }
    }

    /// Refuses `@` where there is no element.
    fn check_item(&self, root: PathRoot, range: &Range<usize>) -> Result<(), TextError> {
        if root == PathRoot::Document || self.nested > 0 {
            return Ok(());
        }
        Err(TextError::new(range.clone(), "`@` is the element of a list, and there is none here")
            .suggest("Write `all($.items[*], @.price > 0)`, or begin the path with `$`."))
    }

    fn call(
        &mut self,
        function: Function,
        name: Range<usize>,
        depth: usize,
    ) -> Result<(Range<usize>, Parsed), TextError> {
        check_depth(depth, &name)?;
        let is_repeated = self.nested > 0;
        let mut arguments = Vec::new();
        if let Some(Kind::Open) = self.peek() {
            let open = self.next().map(|token| token.range).unwrap_or_default();
            while !matches!(self.peek(), Some(Kind::Close)) {
                // The list of `all` is not one of its own elements.
                let is_nested = function.tests_elements() && !arguments.is_empty();
                self.nested += usize::from(is_nested);
                arguments.push(self.any(depth + 1)?);
                self.nested -= usize::from(is_nested);
                match self.peek() {
                    Some(Kind::Comma) => drop(self.next()),
                    _ => break,
                }
            }
            self.close(open)?;
        }
        let range = name.start..self.at.end;
        let slot = self.slots;
        self.slots += 1;
        let call = Call { function, name, arguments, range: range.clone(), slot, is_repeated };
        Ok((range, call.build()?))
    }

    fn refuse_comparison(&self) -> Result<(), TextError> {
        match self.tokens.as_slice().first() {
            Some(Token { range, kind: Kind::Comparison(_) }) => {
                Err(TextError::new(range.clone(), "comparisons cannot follow each other")
                    .suggest("Join them with `&&`: `$.x > 1 && $.x < 5`."))
            }
            _ => Ok(()),
        }
    }

    fn close(&mut self, open: Range<usize>) -> Result<(), TextError> {
        match self.next() {
            Some(Token { kind: Kind::Close, .. }) => Ok(()),
            Some(token) => Err(TextError::new(token.range, "expected `)`, `&&`, `||` or a comparison")),
            None => Err(TextError::new(open, "this `(` is not closed")),
        }
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.next()?;
        self.at = token.range.clone();
        Some(token)
    }

    fn peek(&self) -> Option<&Kind> {
        self.tokens.as_slice().first().map(|token| &token.kind)
    }
}

fn check_depth(depth: usize, range: &Range<usize>) -> Result<(), TextError> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    Err(TextError::new(range.clone(), format!("nested more than {MAX_DEPTH} levels deep")))
}

fn as_condition(range: Range<usize>, parsed: Parsed) -> Result<Expression, TextError> {
    match parsed {
        Parsed::Condition(expression) => Ok(expression),
        Parsed::Value(operand) => truth(operand),
        Parsed::List(_) => Err(several(range)),
    }
}

fn as_value(range: Range<usize>, parsed: Parsed) -> Result<Operand, TextError> {
    match parsed {
        Parsed::Value(operand) => Ok(operand),
        Parsed::List(_) => Err(several(range)),
        Parsed::Condition(_) => Err(TextError::new(range, "a condition is no value to calculate with")),
    }
}

/// Returns a value that is a condition by itself.
pub(super) fn truth(operand: Operand) -> Result<Expression, TextError> {
    match &operand.content {
        Content::Literal(value) if value.as_bool().is_none() => {
            Err(TextError::new(operand.range, "this value is neither true nor false")
                .suggest("Compare it: `$.x == 'text'`."))
        }
        Content::Length(_) => Err(TextError::new(operand.range, "a length is neither true nor false")
            .suggest("Write `$.x.length > 0`.")),
        Content::Computed(_) => Err(TextError::new(operand.range, "this value is neither true nor false")
            .suggest("Compare it: `count($.items[*]) > 0`.")),
        _ => Ok(Expression::Truth(operand)),
    }
}

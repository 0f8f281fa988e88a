//! The text of a page, with the spaces and line ends that its positions imply (ISO 32000-1, 9.4).

use std::rc::Rc;

use lopdf::{Object, Stream, content::Operation};

use super::{font::Font, resources::Resources};

/// A gap between two strings that is larger than this part of the font size is a space.
const SPACE: f32 = 0.15;
/// A move across the line that is larger than this part of the font size ends the line.
const LINE: f32 = 0.5;
/// The maximum number of forms within each other.
const MAX_DEPTH: usize = 8;

/// Reads the text of a page from its operations.
pub(super) fn text_of(resources: Rc<Resources<'_>>, operations: &[Operation]) -> String {
    let mut reader = TextReader::new(resources);
    operations.iter().for_each(|operation| reader.apply(operation));
    reader.text
}

/// Reads the text of a form by itself. Returns it, and whether that is all of it; none if the form cannot be read.
pub(super) fn text_of_form<'a>(resources: &Rc<Resources<'a>>, stream: &'a Stream) -> Option<(String, bool)> {
    let form = resources.form_of(stream)?;
    let mut reader = TextReader::new(form.resources.unwrap_or_else(|| Rc::clone(resources)));
    form.operations.iter().for_each(|operation| reader.apply(operation));
    Some((reader.text, !reader.has_unread))
}

/// Reads text while it follows the positions of the strings.
struct TextReader<'a> {
    resources: Rc<Resources<'a>>,
    state: State<'a>,
    saved: Vec<State<'a>>,
    matrix: Matrix,
    /// The start of the line.
    line: Matrix,
    end: Option<End>,
    text: String,
    /// Where the text has a space instead of the character spacing in the last string.
    guessed_space: Option<usize>,
    /// The number of forms around this content.
    depth: usize,
    /// Whether a string was shown that has no meaning here.
    has_unread: bool,
}

/// The end of a string.
#[derive(Clone, Copy)]
struct End {
    /// Where its last character ends, on the page.
    x: f32,
    y: f32,
    /// The character spacing after it.
    spacing: f32,
    /// The character spacing as it was set.
    character_spacing: f32,
}

/// The graphics state that decides where text is.
#[derive(Clone)]
struct State<'a> {
    page: Matrix,
    font: Option<Rc<Font<'a>>>,
    size: f32,
    character_spacing: f32,
    word_spacing: f32,
    scale: f32,
    leading: f32,
}

impl Default for State<'_> {
    fn default() -> Self {
        Self {
            page: Matrix::IDENTITY,
            font: None,
            size: 1.0,
            character_spacing: 0.0,
            word_spacing: 0.0,
            scale: 1.0,
            leading: 0.0,
        }
    }
}

impl<'a> TextReader<'a> {
    fn new(resources: Rc<Resources<'a>>) -> Self {
        Self {
            resources,
            state: State::default(),
            saved: Vec::new(),
            matrix: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            end: None,
            text: String::new(),
            guessed_space: None,
            depth: 0,
            has_unread: false,
        }
    }
}

impl TextReader<'_> {
    fn apply(&mut self, operation: &Operation) {
        let operands = operation.operands.as_slice();
        let number = |at: usize| operands.get(at).and_then(|it| it.as_float().ok()).unwrap_or_default();
        match operation.operator.as_str() {
            "q" => self.saved.push(self.state.clone()),
            "Q" => self.state = self.saved.pop().unwrap_or_default(),
            "cm" => self.state.page = Matrix::read(operands).then(self.state.page),
            "BT" => (self.matrix, self.line) = (Matrix::IDENTITY, Matrix::IDENTITY),
            "Tf" => {
                let name = operands.first().and_then(|name| name.as_name().ok());
                (self.state.font, self.state.size) =
                    (name.and_then(|name| self.resources.font(name)), number(1));
            }
            "Tc" => self.state.character_spacing = number(0),
            "Tw" => self.state.word_spacing = number(0),
            "Tz" => self.state.scale = number(0) / 100.0,
            "TL" => self.state.leading = number(0),
            "Td" => self.next_line(number(0), number(1)),
            "TD" => {
                self.state.leading = -number(1);
                self.next_line(number(0), number(1));
            }
            "Tm" => {
                self.line = Matrix::read(operands);
                self.matrix = self.line;
            }
            "T*" => self.next_line(0.0, -self.state.leading),
            "Do" => self.draw(operands),
            operator => self.show_operation(operator, operands),
        }
    }

    fn show_operation(&mut self, operator: &str, operands: &[Object]) {
        match operator {
            "Tj" => operands.iter().for_each(|string| self.show(string)),
            "TJ" => {
                let items = operands.first().and_then(|items| items.as_array().ok());
                items.into_iter().flatten().for_each(|item| self.show(item));
            }
            "'" | "\"" => {
                self.next_line(0.0, -self.state.leading);
                operands
                    .iter()
                    .filter(|operand| operand.as_str().is_ok())
                    .for_each(|string| self.show(string));
            }
            _ => {}
        }
    }

    fn next_line(&mut self, x: f32, y: f32) {
        self.line = Matrix::translation(x, y).then(self.line);
        self.matrix = self.line;
    }

    /// Shows a string, or moves by a number of `TJ`.
    fn show(&mut self, item: &Object) {
        if let Ok(offset) = item.as_float() {
            self.advance(-offset / 1000.0 * self.state.size * self.state.scale);
            return;
        }
        let Ok(bytes) = item.as_str() else { return };
        let Some(font) = self.state.font.clone() else {
            self.has_unread |= bytes.iter().any(|byte| *byte != b' ');
            return;
        };
        self.decode(bytes, &font);
        let State { size, character_spacing, word_spacing, scale, .. } = self.state;
        let (width, characters, spaces) = font.measure(bytes);
        let spacing = character_spacing * scale;
        self.advance((width * size + spaces * word_spacing) * scale + (characters - 1.0) * spacing);
        let end = self.matrix.then(self.state.page);
        let spacing_on_page = spacing * end.a.hypot(end.b);
        self.end = Some(End { x: end.e, y: end.f, spacing: spacing_on_page, character_spacing });
        self.advance(spacing);
    }

    /// Adds the text of a string. Some producers write the space between two characters as their spacing. Letters of
    /// longer strings, and of strings that follow each other with the same spacing, are spaced out.
    fn decode(&mut self, bytes: &[u8], font: &Font<'_>) {
        let before = self.text.len();
        let size = self.state.size;
        let character_spacing = self.state.character_spacing;
        self.separate();
        let continues = self.text.len() == before
            && self.end.is_some_and(|end| (end.character_spacing - character_spacing).abs() <= f32::EPSILON);
        if let Some(space) = self.guessed_space.take().filter(|_| continues) {
            self.text.remove(space);
        }
        let mut codes = font.codes(bytes);
        match (codes.next(), codes.next(), codes.next()) {
            (Some(first), Some(second), None) if !continues && character_spacing > SPACE * size.abs() => {
                self.text.push_str(&font.decode(first));
                self.guessed_space = Some(self.text.len());
                self.text.push(' ');
                self.text.push_str(&font.decode(second));
            }
            _ => self.text.push_str(&font.decode(bytes)),
        }
    }

    /// Reads the content of a form.
    fn draw(&mut self, operands: &[Object]) {
        let name = operands.first().and_then(|name| name.as_name().ok()).filter(|_| self.depth < MAX_DEPTH);
        let Some(form) = name.and_then(|name| self.resources.form(name)) else { return };
        let state = State { page: Matrix::read(form.matrix).then(self.state.page), ..self.state.clone() };
        let mut inner = TextReader {
            resources: form.resources.unwrap_or_else(|| Rc::clone(&self.resources)),
            state,
            saved: Vec::new(),
            matrix: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            end: self.end,
            text: std::mem::take(&mut self.text),
            guessed_space: None,
            depth: self.depth + 1,
            has_unread: self.has_unread,
        };
        form.operations.iter().for_each(|operation| inner.apply(operation));
        (self.text, self.end, self.guessed_space) = (inner.text, inner.end, None);
        self.has_unread = inner.has_unread;
    }

    fn advance(&mut self, width: f32) {
        self.matrix = Matrix::translation(width, 0.0).then(self.matrix);
    }

    /// Adds the space or the line end between the last string and the next one.
    fn separate(&mut self) {
        let start = self.matrix.then(self.state.page);
        let Some(End { x, y, spacing, .. }) = self.end else { return };
        let length = start.a.hypot(start.b);
        let size = (self.state.size * length).abs();
        if size <= f32::EPSILON || self.text.ends_with(char::is_whitespace) && !self.text.ends_with(' ') {
            return;
        }
        let right = start.a / length;
        let up = start.b / length;
        let dx = start.e - x;
        let dy = start.f - y;
        // The distance in the direction of the line, and across it: the text may be rotated.
        let along = dx * right + dy * up;
        let across = dy * right - dx * up;
        // The next string follows the last character or its spacing, which kerning reduces.
        let gap = (along - along.clamp(spacing.min(0.0), spacing.max(0.0))).abs();
        if across.abs() > LINE * size {
            self.text.push('\n');
        } else if gap > SPACE * size && !self.text.ends_with(' ') {
            self.text.push(' ');
        }
    }
}

/// An affine transformation: `[a b c d e f]`.
#[derive(Clone, Copy)]
struct Matrix {
    a: f32,
    b: f32,
    c: f32,
    d: f32,
    e: f32,
    f: f32,
}

impl Matrix {
    const IDENTITY: Self = Self::translation(0.0, 0.0);

    const fn translation(e: f32, f: f32) -> Self {
        Self { a: 1.0, b: 0.0, c: 0.0, d: 1.0, e, f }
    }

    /// Reads six operands; the identity if there are fewer.
    fn read(operands: &[Object]) -> Self {
        let numbers: Vec<f32> = operands.iter().filter_map(|operand| operand.as_float().ok()).collect();
        match *numbers.as_slice() {
            [a, b, c, d, e, f] => Self { a, b, c, d, e, f },
            _ => Self::IDENTITY,
        }
    }

    /// Returns this transformation followed by another.
    fn then(self, next: Self) -> Self {
        Self {
            a: self.a * next.a + self.b * next.c,
            b: self.a * next.b + self.b * next.d,
            c: self.c * next.a + self.d * next.c,
            d: self.c * next.b + self.d * next.d,
            e: self.e * next.a + self.f * next.c + next.e,
            f: self.e * next.b + self.f * next.d + next.f,
        }
    }
}

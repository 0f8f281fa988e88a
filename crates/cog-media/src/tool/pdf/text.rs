//! The text of a page, with the spaces and line ends that its positions imply (ISO 32000-1, 9.4).

use lopdf::{Object, content::Operation};

use super::font::{Font, Fonts};

/// A gap between two strings that is larger than this part of the font size is a space.
const SPACE: f32 = 0.15;
/// A move across the line that is larger than this part of the font size ends the line.
const LINE: f32 = 0.5;

/// Reads the text of a page from its operations.
pub(super) fn text_of(fonts: &Fonts<'_>, operations: &[Operation]) -> String {
    let mut reader = TextReader {
        fonts,
        state: State::default(),
        saved: Vec::new(),
        matrix: Matrix::IDENTITY,
        line: Matrix::IDENTITY,
        end: None,
        text: String::new(),
    };
    operations.iter().for_each(|operation| reader.apply(operation));
    reader.text
}

/// Reads text while it follows the positions of the strings.
struct TextReader<'a> {
    fonts: &'a Fonts<'a>,
    state: State<'a>,
    saved: Vec<State<'a>>,
    matrix: Matrix,
    /// The start of the line.
    line: Matrix,
    /// Where the last string ended, on the page.
    end: Option<(f32, f32)>,
    text: String,
}

/// The graphics state that decides where text is.
#[derive(Clone)]
struct State<'a> {
    page: Matrix,
    font: Option<&'a Font<'a>>,
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
                (self.state.font, self.state.size) = (name.and_then(|name| self.fonts.get(name)), number(1));
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
        let (Ok(bytes), Some(font)) = (item.as_str(), self.state.font) else { return };
        self.separate();
        self.text.push_str(&font.decode(bytes));
        let State { size, character_spacing, word_spacing, scale, .. } = self.state;
        let (width, characters, spaces) = font.measure(bytes);
        self.advance((width * size + characters * character_spacing + spaces * word_spacing) * scale);
        let end = self.matrix.then(self.state.page);
        self.end = Some((end.e, end.f));
    }

    fn advance(&mut self, width: f32) {
        self.matrix = Matrix::translation(width, 0.0).then(self.matrix);
    }

    /// Adds the space or the line end between the last string and the next one.
    fn separate(&mut self) {
        let start = self.matrix.then(self.state.page);
        let Some((x, y)) = self.end else { return };
        let length = start.a.hypot(start.b);
        let size = (self.state.size * length).abs();
        if size <= f32::EPSILON || self.text.ends_with(char::is_whitespace) && !self.text.ends_with(' ') {
            return;
        }
        let (right, up) = (start.a / length, start.b / length);
        let (dx, dy) = (start.e - x, start.f - y);
        let (along, across) = (dx * right + dy * up, dy * right - dx * up);
        if across.abs() > LINE * size {
            self.text.push('\n');
        } else if along.abs() > SPACE * size && !self.text.ends_with(' ') {
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

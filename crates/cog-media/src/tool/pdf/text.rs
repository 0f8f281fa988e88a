//! The text of a page, with the spaces and line ends that its positions imply (ISO 32000-1, 9.4).

use std::rc::Rc;

use hayro_syntax::{
    object::{Array, Dict, Name, Object, Stream},
    page::{Page, Resources},
};

use super::{
    content::for_each_operation,
    font::{Character, Font, Fonts},
    placed::PlacedText,
};

/// A gap between two strings that is larger than this part of the font size is a space.
const SPACE: f32 = 0.15;
/// A move across the line that is larger than this part of the font size ends the line.
const LINE: f32 = 0.5;
/// The maximum bytes of content of a page. A larger one is compressed hundreds of times, and no text is so long.
const MAX_CONTENT: usize = 64 << 20;
/// The maximum number of forms within each other.
const MAX_DEPTH: usize = 8;
/// The maximum bytes of content of all forms that a page draws, each counted whenever it is drawn.
const MAX_DRAWN: usize = 32 << 20;
/// What drawing a form counts in addition to its content, so that the number of forms is bounded too.
const DRAWING: usize = 16 << 10;

/// What the pages of a document share while their text is read.
#[derive(Default)]
pub(super) struct Drawing<'a> {
    fonts: Fonts<'a>,
    /// The bytes of content of forms that the page may still draw.
    left: usize,
}

impl<'a> Drawing<'a> {
    /// Starts a page: it may draw as much as the last one.
    pub(super) fn start_page(&mut self) {
        self.left = MAX_DRAWN;
    }

    /// Reads the text of a page.
    pub(super) fn text_of_page(&mut self, page: &Page<'a>) -> PlacedText {
        let mut reader = TextReader::new(self, Rc::new(page.resources().clone()));
        reader.read(page.page_stream().filter(|content| content.len() <= MAX_CONTENT).unwrap_or_default());
        reader.placed
    }

    /// Reads the text of a form by itself, with the resources of its page unless it has its own. Returns it, and
    /// whether that is all of it; none if the form cannot be read.
    pub(super) fn text_of_form(&mut self, page: &Page<'a>, form: &Stream<'a>) -> Option<(String, bool)> {
        let resources = own_resources(form).unwrap_or_else(|| Rc::new(page.resources().clone()));
        let content = self.content_of(form)?;
        let mut reader = TextReader::new(self, resources);
        reader.read(&content);
        Some((reader.placed.text, !reader.has_unread))
    }

    /// Returns the content of a form, unless the page has drawn too much.
    fn content_of(&mut self, form: &Stream<'a>) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(DRAWING)?;
        let content = form.decoded_data().ok()?;
        self.left = self.left.checked_sub(content.len())?;
        Some(content.into_owned())
    }
}

fn own_resources<'a>(form: &Stream<'a>) -> Option<Rc<Resources<'a>>> {
    form.dict().get::<Dict<'a>>("Resources").map(|own| Rc::new(Resources::new(own)))
}

/// Reads text while it follows the positions of the strings.
struct TextReader<'d, 'a> {
    drawing: &'d mut Drawing<'a>,
    resources: Rc<Resources<'a>>,
    state: State<'a>,
    saved: Vec<State<'a>>,
    matrix: Matrix,
    /// The start of the line.
    line: Matrix,
    end: Option<End>,
    placed: PlacedText,
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
    font: Option<Font<'a>>,
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

impl<'d, 'a> TextReader<'d, 'a> {
    fn new(drawing: &'d mut Drawing<'a>, resources: Rc<Resources<'a>>) -> Self {
        Self {
            drawing,
            resources,
            state: State::default(),
            saved: Vec::new(),
            matrix: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            end: None,
            placed: PlacedText::default(),
            guessed_space: None,
            depth: 0,
            has_unread: false,
        }
    }

    fn read(&mut self, content: &[u8]) {
        for_each_operation(content, |operator, operands| self.apply(operator, operands));
    }

    fn apply(&mut self, operator: &[u8], operands: &[Object<'_>]) {
        match operator {
            b"q" => self.saved.push(self.state.clone()),
            b"Q" => self.state = self.saved.pop().unwrap_or_default(),
            b"cm" => self.state.page = Matrix::read(operands).then(self.state.page),
            b"BT" => {
                self.matrix = Matrix::IDENTITY;
                self.line = Matrix::IDENTITY;
            }
            b"Tf" => {
                // Without a name, it is damaged, and the font stays.
                if let Some(name) = name(operands) {
                    self.state.font = self.font(name);
                    self.state.size = number(operands, 1);
                }
            }
            b"Tc" => self.state.character_spacing = number(operands, 0),
            b"Tw" => self.state.word_spacing = number(operands, 0),
            b"Tz" => self.state.scale = number(operands, 0) / 100.0,
            b"TL" => self.state.leading = number(operands, 0),
            b"Td" => self.next_line(number(operands, 0), number(operands, 1)),
            b"TD" => {
                self.state.leading = -number(operands, 1);
                self.next_line(number(operands, 0), number(operands, 1));
            }
            b"Tm" => {
                self.line = Matrix::read(operands);
                self.matrix = self.line;
            }
            b"T*" => self.next_line(0.0, -self.state.leading),
            b"Do" => self.draw(operands),
            b"Tj" => operands.iter().for_each(|string| self.show(string)),
            b"TJ" => {
                if let Some(Object::Array(items)) = operands.first() {
                    items.iter::<Object<'_>>().for_each(|item| self.show(&item));
                }
            }
            b"'" | b"\"" => {
                self.next_line(0.0, -self.state.leading);
                // The spacings before the string are numbers.
                let strings = operands.iter().filter(|operand| matches!(operand, Object::String(_)));
                strings.for_each(|string| self.show(string));
            }
            _ => {}
        }
    }

    fn font(&self, name: &Name<'_>) -> Option<Font<'a>> {
        self.drawing.fonts.font(&self.resources.get_font(name)?)
    }

    fn next_line(&mut self, x: f32, y: f32) {
        self.line = Matrix::translation(x, y).then(self.line);
        self.matrix = self.line;
    }

    /// Shows a string, or moves by a number of `TJ`.
    fn show(&mut self, item: &Object<'_>) {
        let string = match item {
            Object::Number(offset) => {
                self.advance(-offset.as_f32() / 1000.0 * self.state.size * self.state.scale);
                return;
            }
            Object::String(string) => string,
            _ => return,
        };
        let Some(font) = self.state.font.clone() else {
            // How long its codes are is not known either.
            self.has_unread = true;
            self.placed.text.push(char::REPLACEMENT_CHARACTER);
            return;
        };
        let characters = font.characters(string);
        self.add(&characters);
        let start = self.matrix.then(self.state.page);
        let State { size, character_spacing, word_spacing, scale, .. } = self.state;
        let spacing = character_spacing * scale;
        for character in &characters {
            let word_spacing = if character.is_space { word_spacing } else { 0.0 };
            self.advance((character.width * size + word_spacing) * scale + spacing);
        }
        // The end is before the spacing of the last character.
        let end = Matrix::translation(-spacing, 0.0).then(self.matrix).then(self.state.page);
        let spacing_on_page = spacing * end.a.hypot(end.b);
        self.end = Some(End { x: end.e, y: end.f, spacing: spacing_on_page, character_spacing });
        let is_blank =
            |character: &Character| character.text.as_ref().is_some_and(|text| text.trim().is_empty());
        if !characters.iter().all(is_blank) {
            self.placed.place([start.e, start.f], [end.e, end.f], (size * start.a.hypot(start.b)).abs());
        }
    }

    /// Adds the text of a string. Some producers write the space between two characters as their spacing. Letters of
    /// longer strings, and of strings that follow each other with the same spacing, are spaced out.
    fn add(&mut self, characters: &[Character]) {
        let before = self.placed.text.len();
        let character_spacing = self.state.character_spacing;
        self.separate();
        let continues = self.placed.text.len() == before
            && self.end.is_some_and(|end| (end.character_spacing - character_spacing).abs() <= f32::EPSILON);
        if let Some(space) = self.guessed_space.take().filter(|_| continues) {
            self.placed.remove(space);
        }
        let is_spaced = !continues && character_spacing > SPACE * self.state.size.abs();
        for (at, character) in characters.iter().enumerate() {
            if at == 1 && characters.len() == 2 && is_spaced {
                self.guessed_space = Some(self.placed.text.len());
                self.placed.text.push(' ');
            }
            match &character.text {
                Some(text) => self.placed.text.push_str(text),
                None => {
                    self.placed.text.push(char::REPLACEMENT_CHARACTER);
                    self.has_unread = true;
                }
            }
        }
    }

    /// Reads the content of a form.
    fn draw(&mut self, operands: &[Object<'_>]) {
        let form = name(operands).filter(|_| self.depth < MAX_DEPTH);
        let form = form.and_then(|name| self.resources.get_x_object(name)).filter(is_form);
        let Some(form) = form else { return };
        let Some(content) = self.drawing.content_of(&form) else { return };
        let matrix = form.dict().get::<Array<'_>>("Matrix");
        let matrix: Vec<Object<'_>> = matrix.iter().flat_map(|matrix| matrix.iter::<Object<'_>>()).collect();
        let mut inner = TextReader {
            resources: own_resources(&form).unwrap_or_else(|| Rc::clone(&self.resources)),
            state: State { page: Matrix::read(&matrix).then(self.state.page), ..self.state.clone() },
            saved: Vec::new(),
            matrix: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            end: self.end,
            placed: std::mem::take(&mut self.placed),
            guessed_space: None,
            depth: self.depth + 1,
            has_unread: self.has_unread,
            drawing: &mut *self.drawing,
        };
        inner.read(&content);
        self.placed = inner.placed;
        self.end = inner.end;
        self.has_unread = inner.has_unread;
        self.guessed_space = None;
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
        if size <= f32::EPSILON
            || self.placed.text.ends_with(char::is_whitespace) && !self.placed.text.ends_with(' ')
        {
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
            self.placed.text.push('\n');
        } else if gap > SPACE * size && !self.placed.text.ends_with(' ') {
            self.placed.text.push(' ');
        }
    }
}

fn is_form(stream: &Stream<'_>) -> bool {
    stream.dict().get::<Name<'_>>("Subtype").is_some_and(|subtype| subtype.as_ref() == b"Form")
}

fn name<'o, 'c>(operands: &'o [Object<'c>]) -> Option<&'o Name<'c>> {
    match operands.first()? {
        Object::Name(name) => Some(name),
        _ => None,
    }
}

/// Returns the number at a place among the operands; zero if there is none.
fn number(operands: &[Object<'_>], at: usize) -> f32 {
    operands.get(at).and_then(as_number).unwrap_or_default()
}

fn as_number(operand: &Object<'_>) -> Option<f32> {
    match operand {
        Object::Number(number) => Some(number.as_f32()),
        _ => None,
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
    fn read(operands: &[Object<'_>]) -> Self {
        let numbers: Vec<f32> = operands.iter().filter_map(as_number).collect();
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

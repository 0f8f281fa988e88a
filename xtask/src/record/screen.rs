//! What a terminal shows after some output: text, colours, and the few movements of the cursor that `cog` uses.

/// The style of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Style {
    pub(super) is_bold: bool,
    pub(super) is_dim: bool,
    pub(super) colour: Option<&'static str>,
}

/// A character and its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) character: char,
    pub(super) style: Style,
}

/// A screen without a lower end.
#[derive(Debug, Default)]
pub(super) struct Screen {
    lines: Vec<Vec<Cell>>,
    row: usize,
    column: usize,
    style: Style,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Shows output, escape sequences included.
    pub(super) fn feed(&mut self, output: &str) {
        let mut characters = output.chars();
        while let Some(character) = characters.next() {
            match character {
                '\u{1b}' => self.escape(&mut characters),
                '\r' => self.column = 0,
                '\n' => (self.row, self.column) = (self.row + 1, 0),
                character if character.is_control() => {}
                character => self.put(character),
            }
        }
    }

    /// The lines, without white space and empty lines behind them.
    pub(super) fn lines(&self) -> Vec<Vec<Cell>> {
        let mut lines = self.lines.clone();
        for line in &mut lines {
            while line.last().is_some_and(|cell| cell.character == ' ') {
                line.pop();
            }
        }
        while lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        lines
    }

    fn put(&mut self, character: char) {
        let row = self.row;
        let column = self.column;
        let style = self.style;
        self.lines.resize_with(self.lines.len().max(row + 1), Vec::new);
        if let Some(line) = self.lines.get_mut(row) {
            let blank = Cell { character: ' ', style: Style::default() };
            line.resize(line.len().max(column + 1), blank);
            if let Some(cell) = line.get_mut(column) {
                *cell = Cell { character, style };
            }
        }
        self.column += 1;
    }

    fn clear_line(&mut self) {
        if let Some(line) = self.lines.get_mut(self.row) {
            line.clear();
        }
    }

    /// `ESC [ numbers letter`; other sequences are ignored.
    fn escape(&mut self, characters: &mut std::str::Chars<'_>) {
        if characters.next() != Some('[') {
            return;
        }
        let mut numbers = String::new();
        let letter = loop {
            match characters.next() {
                Some(character) if character.is_ascii_alphabetic() => break character,
                Some(character) => numbers.push(character),
                None => return,
            }
        };
        let first = numbers.split(';').next().and_then(|number| number.parse().ok());
        match letter {
            'm' => numbers.split(';').for_each(|number| self.restyle(number)),
            'A' => self.row = self.row.saturating_sub(first.unwrap_or(1)),
            'K' => self.clear_line(),
            'J' => self.lines.truncate(self.row),
            _ => {}
        }
    }

    fn restyle(&mut self, number: &str) {
        match number {
            "" | "0" => self.style = Style::default(),
            "1" => self.style.is_bold = true,
            "2" => self.style.is_dim = true,
            "31" => self.style.colour = Some("red"),
            "32" => self.style.colour = Some("green"),
            "33" => self.style.colour = Some("yellow"),
            "36" => self.style.colour = Some("cyan"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: &str) -> Vec<String> {
        let mut screen = Screen::new();
        screen.feed(output);
        screen.lines().iter().map(|line| line.iter().map(|cell| cell.character).collect()).collect()
    }

    #[test]
    fn a_cleared_line_is_written_again() {
        assert_eq!(shown("waiting\r\u{1b}[2Kdone\r\nnext  \r\n"), ["done", "next"]);
    }

    #[test]
    fn the_cursor_moves_up() {
        assert_eq!(shown("one\ntwo\n\u{1b}[2A\u{1b}[Jthree\n"), ["three"]);
    }

    #[test]
    fn a_style_lasts_until_it_is_reset() {
        let mut screen = Screen::new();
        screen.feed("\u{1b}[1;36ma\u{1b}[0mb");
        let styles: Vec<Style> = screen.lines().concat().iter().map(|cell| cell.style).collect();
        assert_eq!(styles, [Style { is_bold: true, is_dim: false, colour: Some("cyan") }, Style::default()]);
    }
}

//! Replies in which objects are wrapped in marks of any kind, with the objects that may be the answer (ruling R82).

/// A reply, and what is known about it because it was built.
pub struct Reply {
    /// The text.
    pub text: String,
    /// The numbers of the objects that are outside drafts.
    pub answers: Vec<usize>,
    /// Whether each mark is closed in the usual place, so that a single answer must be found.
    pub is_regular: bool,
}

/// Returns whether a document is one of the objects outside drafts.
pub fn is_answer(reply: &Reply, document: &str) -> bool {
    reply.answers.iter().any(|number| document == object(*number))
}

fn object(number: usize) -> String {
    format!("{{\"id\":{number}}}")
}

/// The maximum number of marks inside each other.
const MAX_DEPTH: usize = 3;

/// The maximum number of bytes of a reply.
const MAX_TEXT: usize = 2 << 10;

/// Text without brackets, in lines of its own.
const PROSE: [&str; 8] = [
    "Well, it fits.\n",
    "a < b, but c > d\n",
    "The assistant thinks so.\n",
    "So be it\n",
    "\n\n",
    "x <- y\n",
    "This is the analysis of it.\n",
    "Is 5 <3 or = 4?\n",
];

/// What is not a complete object, for drafts.
const SCRAPS: [&str; 6] = ["{", "\"id\": 1}", "{\"id\": ", "[1, 2", "}", "{\"a\": \"</q>\"}"];

/// Marks that only wrap the answer, and headers of the assistant.
const WRAPPERS: [[&str; 2]; 12] = [
    ["<answer>", "</answer>\n"],
    ["<OUTPUT>\n", "</OUTPUT>\n"],
    ["<response id=\"1\">", "</response>\n"],
    ["[RESULT]", "[/RESULT]\n"],
    ["<|begin_of_box|>", "<|end_of_box|>\n"],
    ["<|START_RESPONSE|>", "<|END_RESPONSE|>\n"],
    ["```json\n", "\n```\n"],
    ["```\n", "\n```\n"],
    ["<|im_start|>assistant\n", "<|im_end|>\n"],
    ["<start_of_turn>model\n", "<end_of_turn>\n"],
    ["<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>\n"],
    ["<final>", "</final>\n"],
];

/// Marks of calls, of other roles, and of reasoning, whose names are known.
const KNOWN: [[&str; 2]; 14] = [
    ["<think>", "</think>\n"],
    ["<thinking>\n", "</thinking>\n"],
    ["[THINK]", "[/THINK]\n"],
    ["◁think▷", "◁/think▷\n"],
    ["<tool_call>\n", "\n</tool_call>\n"],
    ["<function=find>", "</function>\n"],
    ["<|tool_call|>", "<|/tool_call|>\n"],
    ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>\n"],
    ["<|im_start|>user\n", "<|im_end|>\n"],
    ["<start_of_turn>user\n", "<end_of_turn>\n"],
    ["<|channel|>analysis<|message|>", "<|end|>\n"],
    ["<|channel>thought\n", "<channel|>\n"],
    ["```tool_code\n", "\n```\n"],
    ["<start_function_call>", "<end_function_call>\n"],
];

impl Reply {
    /// Builds a reply; each byte decides about one part.
    pub fn new(bytes: &[u8]) -> Self {
        let reply = Reply { text: String::new(), answers: Vec::new(), is_regular: true };
        let mut builder = Builder { bytes: bytes.iter(), objects: 0, is_after_scrap: false, reply };
        while builder.reply.text.len() < MAX_TEXT && !builder.bytes.as_slice().is_empty() {
            if builder.part(&mut Place::default()) == Flow::End {
                break;
            }
        }
        builder.reply
    }
}

/// Whether a reply may go on.
#[derive(PartialEq, Eq)]
enum Flow {
    More,
    /// A mark is open up to the end of the reply.
    End,
}

/// Where a part is.
#[derive(Clone, Default)]
struct Place {
    depth: usize,
    is_draft: bool,
    /// A token of the template ends what another one opened, so that none may be inside.
    is_template: bool,
    is_comment: bool,
}

/// A mark, and the place inside it.
struct Mark {
    open: String,
    close: String,
    place: Place,
    /// Whether it encloses the rest of the reply where it is not closed.
    may_stay_open: bool,
}

struct Builder<'a> {
    bytes: std::slice::Iter<'a, u8>,
    objects: usize,
    /// Whether the text ends in a scrap.
    is_after_scrap: bool,
    reply: Reply,
}

impl Builder<'_> {
    fn next(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or_default()
    }

    fn choose<T: Copy + Default>(&mut self, list: &[T]) -> T {
        let at = usize::from(self.next());
        list.iter().cycle().nth(at).copied().unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        self.is_after_scrap = false;
        self.reply.text.push_str(text);
    }

    fn part(&mut self, place: &mut Place) -> Flow {
        match self.next() % 10 {
            0..=2 => {
                self.object(place);
                Flow::More
            }
            3 if place.is_draft => {
                // What opens like an object may hide the closing mark.
                self.reply.is_regular = false;
                let scrap = self.choose(&SCRAPS);
                self.push(scrap);
                self.is_after_scrap = true;
                Flow::More
            }
            3 | 4 => {
                let prose = self.choose(&PROSE);
                self.push(prose);
                Flow::More
            }
            _ if place.depth == MAX_DEPTH => Flow::More,
            8 if !place.is_draft => {
                self.call();
                Flow::More
            }
            5 if !place.is_template => self.wrapper(place),
            6 if !place.is_template => self.known(place),
            7 if !place.is_draft => self.sentence(place),
            _ => self.unknown(place),
        }
    }

    fn object(&mut self, place: &Place) {
        if !place.is_draft {
            self.reply.answers.push(self.objects);
        }
        let text = object(self.objects);
        self.objects += 1;
        self.push(&text);
        self.push("\n");
    }

    /// A call in words, whose only end is the one of its object.
    fn call(&mut self) {
        let name = self.name();
        let [open, close] = match self.next() % 5 {
            0 => [format!("{name}("), ")\n".to_owned()],
            1 => [format!("I use api.{name}(\n"), ")\n".to_owned()],
            2 => ["Action Input: ".to_owned(), "\n".to_owned()],
            3 => [format!("TOOL_CALL: {name} "), "\n".to_owned()],
            _ => ["**Function call:**\n```json\n".to_owned(), "\n```\n".to_owned()],
        };
        self.push(&open);
        let text = object(self.objects);
        self.objects += 1;
        self.push(&text);
        self.push(&close);
    }

    fn wrapper(&mut self, place: &Place) -> Flow {
        let [open, close] = self.choose(&WRAPPERS);
        let is_template = open.starts_with("<|") || open.starts_with("<start") || open.starts_with("```");
        let place = Place { depth: place.depth + 1, is_template, ..place.clone() };
        self.enclosed(Mark { open: open.to_owned(), close: close.to_owned(), place, may_stay_open: false })
    }

    fn known(&mut self, place: &Place) -> Flow {
        let [open, close] = self.choose(&KNOWN);
        let place = self.inside(place, true);
        self.enclosed(Mark { open: open.to_owned(), close: close.to_owned(), place, may_stay_open: true })
    }

    /// A mark with an unknown name.
    fn unknown(&mut self, place: &Place) -> Flow {
        let name = self.name();
        let upper = name.to_uppercase();
        let forms = [
            (format!("<{name}>"), format!("</{name}>\n")),
            (format!("<{upper} step=\"1\">\n"), format!("</{upper}>\n")),
            (format!("[{upper}]"), format!("[/{upper}]\n")),
            (format!("[[{name}]]"), format!("[[/{name}]]\n")),
            (format!("◁{name}▷"), format!("◁/{name}▷\n")),
            ("<!-- ".to_owned(), " -->\n".to_owned()),
            (format!("<|{name}|>"), format!("<|/{name}|>\n")),
            (format!("<|begin_of_{name}|>"), format!("<|end_of_{name}|>\n")),
            (format!("<|{upper}_START|>"), format!("<|{upper}_END|>\n")),
            (format!("<|{name}>"), format!("<{name}|>\n")),
            (format!("<|channel|>{name}<|message|>"), "<|end|>\n".to_owned()),
        ];
        // A comment ends at the first `-->`, and a token of the template at the first end.
        let allowed = if place.is_template { 5 } else { forms.len() };
        let at = usize::from(self.next()) % allowed;
        if place.is_comment && at == 5 {
            return Flow::More;
        }
        let (open, close) = forms.into_iter().nth(at).unwrap_or_default();
        let mut inside = self.inside(place, at > 5);
        inside.is_comment |= at == 5;
        self.enclosed(Mark { open, close, place: inside, may_stay_open: true })
    }

    /// A mark that is used like a word of a sentence. Only its closing mark shows that it encloses something.
    fn sentence(&mut self, place: &Place) -> Flow {
        let name = self.name();
        let [open, close] = match self.next() % 3 {
            0 => [format!("so <{name}> maybe "), format!("</{name}> and so on\n")],
            1 => [format!("word<{name}>"), format!(" </{name}>\n")],
            _ => [format!("[{name}] "), format!("[/{name}]\n")],
        };
        let place = self.inside(place, false);
        self.reply.is_regular = false;
        self.enclosed(Mark { open, close, place, may_stay_open: false })
    }

    fn inside(&self, place: &Place, is_template: bool) -> Place {
        Place {
            depth: place.depth + 1,
            is_draft: true,
            is_template: place.is_template || is_template,
            is_comment: place.is_comment,
        }
    }

    /// Adds a mark with up to three parts inside. One in four drafts outside others is never closed.
    fn enclosed(&mut self, mark: Mark) -> Flow {
        // Right after a word, a second mark of the same kind could also be mentioned in the first one.
        if self.is_after_scrap {
            self.push("\n");
        }
        self.push(&mark.open);
        let mut place = mark.place;
        for _ in 0..self.next() % 4 {
            if self.part(&mut place) == Flow::End {
                return Flow::End;
            }
        }
        if mark.may_stay_open && place.depth == 1 && self.next().is_multiple_of(4) {
            // All that follows is a draft.
            self.reply.is_regular = false;
            while self.reply.text.len() < MAX_TEXT && !self.bytes.as_slice().is_empty() {
                let _ = self.part(&mut place);
            }
            return Flow::End;
        }
        self.push(&mark.close);
        Flow::More
    }

    fn name(&mut self) -> String {
        let letters = (0..2 + self.next() % 5).map(|_| char::from(b'a' + self.next() % 26));
        std::iter::once('q').chain(letters.collect::<Vec<_>>()).collect()
    }
}

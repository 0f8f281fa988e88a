//! The output of the program: data on stdout, messages on stderr (docs/decisions/013-stdout-is-data.md).

mod card;
mod console;
mod html;
mod live;
pub(crate) mod log;
mod progress;
mod text;
mod tree;

pub(crate) use self::{
    card::card,
    console::{Console, ErrorReport, Palette},
    html::{Escaped, page},
    live::{FRAME, LiveView},
    progress::{LineView, Progress},
    text::{Table, printable, truncate, width, wrap},
    tree::Layout,
};

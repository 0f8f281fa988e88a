//! The output of the program: data on stdout, messages on stderr (docs/decisions/013-stdout-is-data.md).

mod card;
mod console;
mod html;
mod live;
mod progress;
mod text;

pub(crate) use self::{
    card::{Layout, card},
    console::{Console, ErrorReport, Palette, start_log},
    html::{Escaped, page, table as html_table},
    live::{FRAME, LiveView},
    progress::{LineView, Progress},
    text::{Table, printable, truncate, width, wrap},
};

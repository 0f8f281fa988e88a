//! The output of the program: data on stdout, messages on stderr (decision 13).

mod card;
mod console;
mod html;
mod live;
pub(crate) mod log;
mod messages;
mod palette;
mod progress;
mod table;
mod text;
mod tree;

pub(crate) use self::{
    card::card,
    console::Console,
    html::{Escaped, page},
    live::{FRAME, LiveView},
    messages::ErrorReport,
    palette::Palette,
    progress::{LineView, Progress},
    table::Table,
    text::{printable, truncate, width, wrap},
    tree::Layout,
};

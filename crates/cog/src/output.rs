//! What the program prints. stdout is data, stderr is talk (design, decision 12).

mod card;
mod console;
mod live;
pub(crate) mod log;
mod paint;
mod plain;
mod progress;
mod table;
mod talk;
mod text;
mod tree;

pub(crate) use self::{
    card::card,
    console::Console,
    live::{FRAME, Live},
    paint::Paint,
    plain::Plain,
    progress::Progress,
    table::Table,
    talk::ErrorReport,
    text::{width, wrap},
    tree::Layout,
};

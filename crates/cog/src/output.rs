//! What the program prints. stdout is data, stderr is talk (design, decision 12).

mod console;
pub(crate) mod log;
mod paint;
mod table;
mod text;

pub(crate) use self::{
    console::{Console, Stream},
    paint::Paint,
    table::Table,
    text::{width, wrap},
};

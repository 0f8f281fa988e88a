//! Where programs that run Cognitive Modules keep data, and how they write files.
//!
//! * A [`KeyedStore`] holds values by [`Key`] within [`Limits`], in memory or in a directory that several processes use. A value
//!   can be claimed: exactly one caller gets it.
//! * [`replace`] and [`write_durably`] write a file that is always complete, and say with [`Durability`] what the write survives.
//! * [`private`] opens files that only this user may read: logs that grow at their end, and locks.
//!
//! Nothing here is async: a caller in a task uses `spawn_blocking`. The time comes in as an argument.
//! docs/durability.md lists what each store survives.

mod keyed;
pub mod private;
mod write;

pub use keyed::{Key, KeyedStore, Layout, Limits, Lookup, OwnerLimits, StoreError, StoreSize};
pub use write::{
    Access, Destination, Durability, destination, link, remove_abandoned, replace, sync_directory_of,
    write_durably,
};

//! Composed modules as a program runs them: modules on disk, and a provider that replies by module.

mod answers;
mod budgets;
mod cache;
mod calls;
mod confirmation;
mod context;
mod each;
mod failures;
mod limits;
mod media;
mod names;
mod patterns;
mod resume;
mod rounds;
mod streams;
mod support;
mod usage;

//! The wire forms: requests as they leave, replies as they come. The files stand in `tests/wire`.

#[cfg(test)]
mod replies;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod splits;

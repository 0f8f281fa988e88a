//! The language server with an editor at the other end of the connection.

#[cfg(test)]
mod requests;

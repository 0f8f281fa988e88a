//! Wire protocols, vendors, the HTTP client, recording and replay.

//! Harmony messages: the only form between prompt and provider.

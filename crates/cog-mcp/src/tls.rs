//! How TLS is done.

/// Chooses the provider of TLS, once in a process.
pub(crate) fn install() {
    // Fails only if the program has installed a provider of its own, which is used then.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

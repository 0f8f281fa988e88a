//! What a static binary sets before it uses glibc.

/// Limits lookups of hosts and users to files and DNS, which are part of the binary.
///
/// By default, glibc loads the libraries that `/etc/nsswitch.conf` of the machine names. They belong to another version of
/// glibc than the one in the binary, and can crash it.
#[cfg(all(target_os = "linux", target_env = "gnu", target_feature = "crt-static"))]
#[expect(unsafe_code, reason = "glibc has this setting only as a C function")]
pub(crate) fn limit_lookups() {
    use std::ffi::{CStr, c_char, c_int};

    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, services: *const c_char) -> c_int;
    }
    let limits: [(&CStr, &CStr); 2] = [(c"hosts", c"files dns"), (c"passwd", c"files")];
    for (database, services) in limits {
        // SAFETY: both texts end with a zero byte and are static. No other thread runs yet.
        // If it fails, the default stays.
        unsafe { __nss_configure_lookup(database.as_ptr(), services.as_ptr()) };
    }
}

/// Other binaries use the C library of the machine.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_feature = "crt-static")))]
pub(crate) fn limit_lookups() {}

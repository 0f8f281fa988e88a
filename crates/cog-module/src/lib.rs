//! Modules on disk: find, load, diagnose, scaffold, migrate, test.

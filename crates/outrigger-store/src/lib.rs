//! SQLite: one append-only, hash-chained log and the projections read from it.

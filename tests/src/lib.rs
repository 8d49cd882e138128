//! Random conditioning trees and a second, literal reading of what must hold on them.
//!
//! [`trees`] draws eviction records, not masks: what is drawn is what a harness could have done, so
//! a property that fails shrinks to a short story. [`Oracle`] reads the same records token by
//! token, straight from the specification and without any code of the layouts, so that the two can
//! be compared to the index.
//!
//! ```
//! use pleach_tests::{Oracle, Trees, trees};
//! proptest::proptest!(|(records in trees(Trees::default()))| {
//!     let oracle = Oracle::of(&records);
//!     assert!(oracle.packed().rows.iter().all(|row| row.tokens.len() == row.ends.len()));
//! });
//! ```
mod growth;
mod oracle;

pub use growth::{Cut, Drawn, Pick, Step, Text, Trees, grow, steps, trees};
pub use oracle::{
    Call, Compared, Identity, Oracle, Replayed, ReplayedTerm, Rows, Scored, Slot, Table,
};

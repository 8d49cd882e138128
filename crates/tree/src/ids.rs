use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($kind, " {}"), self.0)
            }
        }
    };
}

id!(
    /// Id of a [`Segment`](crate::Segment), in a space of its own.
    SegmentId,
    "segment"
);
id!(
    /// Id of a context, in a space of its own.
    ContextId,
    "context"
);
id!(
    /// Id of a [`Generation`](crate::Generation), in a space of its own.
    GenerationId,
    "generation"
);

use pleach_tree::{Origin, Role, Segment};

/// Who speaks in a segment, as far as colours tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Speaker {
    System,
    User,
    Policy,
    Assistant,
    Tool,
    Harness,
}

impl Speaker {
    pub(crate) const ALL: [Self; 6] =
        [Self::System, Self::User, Self::Policy, Self::Assistant, Self::Tool, Self::Harness];

    /// Loss and origin come before the role: what the policy sampled looks the same wherever it
    /// stands.
    pub(crate) fn of(segment: &Segment) -> Self {
        match (segment.origin, segment.role) {
            (Origin::Policy, _) => Self::Policy,
            (_, Role::System) => Self::System,
            (Origin::Harness, _) => Self::Harness,
            (_, Role::User) => Self::User,
            (_, Role::Tool) => Self::Tool,
            (_, Role::Assistant) => Self::Assistant,
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Policy => "policy (sampled)",
            Self::Assistant => "assistant, not sampled",
            Self::Tool => "tool",
            Self::Harness => "harness",
        }
    }
}

use serde::{Deserialize, Serialize};

use super::Extra;

/// How closely the records follow what the policy saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// Conditioning was guessed from the outside.
    Inferred,
    /// Messages are as they were sent, token ids are not recorded.
    Message,
    /// Token ids are the ones the policy saw and sampled.
    Token,
}

/// What the serving engine does with survivors at an eviction; it decides which layout is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheSemantics {
    /// The next request is a new prompt: survivors behind a hole are encoded again.
    #[default]
    Reprefill,
    /// Keys and values are dropped in place: survivors keep theirs.
    KvEvict,
}

/// The tokenizer that token ids belong to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TokenizerIdentity {
    /// Name of the tokenizer, such as a repository id.
    pub id: String,
    /// Digest of its file, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Digest of the chat template that rendered the messages, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_template_sha256: Option<String>,
    /// Number of ids; an id at or above it is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocab_size: Option<u32>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The first record of a file: what wrote it and what its token ids mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Format version; this crate reads version 1.
    pub version: u32,
    /// Name of the harness.
    pub harness: String,
    /// Version of the harness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness_version: Option<String>,
    /// How closely the records follow what the policy saw.
    pub fidelity: Fidelity,
    /// The files that [`Source::file`](super::Source::file) indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What happens to survivors at an eviction.
    #[serde(default)]
    pub cache: CacheSemantics,
    /// The tokenizer of the token ids, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerIdentity>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Header {
    /// A version 1 header under reprefill, without files and tokenizer.
    pub fn new(harness: impl Into<String>, fidelity: Fidelity) -> Self {
        Self {
            version: 1,
            harness: harness.into(),
            harness_version: None,
            fidelity,
            files: Vec::new(),
            cache: CacheSemantics::default(),
            tokenizer: None,
            extra: Extra::new(),
        }
    }
}

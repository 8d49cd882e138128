use serde::{Deserialize, Deserializer, Serialize};

use super::Extra;
use crate::SegmentId;

/// Whose turn in the conversation a segment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions at the head of the context.
    System,
    /// A human's turn, or what a harness puts in a human's place.
    User,
    /// The policy's turn.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// Who wrote a segment; only what the policy wrote can carry loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person.
    Human,
    /// The model that is trained.
    Policy,
    /// A tool or the outside world.
    Environment,
    /// The harness: prompts, reminders, placeholders, glue of a chat template.
    Harness,
    /// Another model, or a provider's rewriting of what the policy sampled.
    ExternalModel,
}

/// Which part of an assistant message a text segment holds, so that a chat template gets each part
/// where it wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Reasoning before the answer.
    Reasoning,
    /// Plain content.
    Content,
    /// A tool call, as the JSON object `{"id", "name", "input"}`.
    ToolCall,
}

/// A run `[start, end)` of a segment's tokens with one loss weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, f64)", into = "(u32, u32, f64)")]
pub struct LossRun {
    /// First token of the run.
    pub start: u32,
    /// First token behind the run.
    pub end: u32,
    /// Loss weight of each of its tokens.
    pub weight: f64,
}

impl From<(u32, u32, f64)> for LossRun {
    fn from((start, end, weight): (u32, u32, f64)) -> Self {
        Self { start, end, weight }
    }
}

impl From<LossRun> for (u32, u32, f64) {
    fn from(run: LossRun) -> Self {
        (run.start, run.end, run.weight)
    }
}

/// Where in the harness's own files a segment was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Index into [`Header::files`](super::Header::files).
    pub file: u32,
    /// Line in that file, counted from 1.
    pub line: u64,
    /// The harness's own key of the record.
    pub key: String,
}

fn numbers<'de, D: Deserializer<'de>>(numbers: D) -> Result<Option<Vec<f64>>, D::Error> {
    let numbers = Option::<Vec<Option<f64>>>::deserialize(numbers)?;
    Ok(numbers.map(|list| list.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()))
}

/// An immutable run of tokens, or of text that is tokenised later, with a role and an origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Id, unique among segments.
    pub id: SegmentId,
    /// Whose turn it belongs to.
    pub role: Role,
    /// Who wrote it.
    pub origin: Origin,
    /// Token ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<u32>>,
    /// Text; required where `tokens` is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Log-probability in nats of each token when it was sampled.
    ///
    /// A null among them reads as no number, which is a fault of the list and not of the segment.
    #[serde(default, deserialize_with = "numbers", skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<f64>>,
    /// Loss weights as runs that tile the segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Vec<LossRun>>,
    /// Where it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Which part of an assistant message the text is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Whether it runs on into the next segment, as pieces of one text that have different authors
    /// do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Ids of the tool calls that the segment makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Id of the tool call that the segment answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_of: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Segment {
    /// A segment without tokens and text, to be filled in.
    pub fn new(id: SegmentId, role: Role, origin: Origin) -> Self {
        Self {
            id,
            role,
            origin,
            tokens: None,
            text: None,
            logprobs: None,
            loss: None,
            source: None,
            part: None,
            open: false,
            calls: Vec::new(),
            result_of: None,
            extra: Extra::new(),
        }
    }

    /// The segment with these token ids.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Vec<u32>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// The segment with this text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Length in tokens, or in bytes of text where there are no tokens yet.
    pub fn extent(&self) -> usize {
        match (&self.tokens, &self.text) {
            (Some(tokens), _) => tokens.len(),
            (None, Some(text)) => text.len(),
            (None, None) => 0,
        }
    }

    /// Loss weight of the token at `offset`, before any question of who sampled it.
    ///
    /// `None` where the segment declares no loss and the default holds.
    pub fn declared_weight(&self, offset: u32) -> Option<f64> {
        let runs = self.loss.as_ref()?;
        let at = runs.partition_point(|run| run.end <= offset);
        runs.get(at).filter(|run| run.start <= offset).map(|run| run.weight)
    }
    /// Gives the first token weight 0 and leaves the weights of the others.
    pub(crate) fn unweight_first(&mut self) {
        let end = u32::try_from(self.extent()).unwrap_or(u32::MAX);
        let mut runs =
            self.loss.take().unwrap_or_else(|| vec![LossRun { start: 0, end, weight: 1.0 }]);
        if let Some(first) = runs.first_mut() {
            first.start = 1;
        }
        runs.retain(|run| run.start < run.end);
        runs.insert(0, LossRun { start: 0, end: 1, weight: 0.0 });
        self.loss = Some(runs);
    }
}

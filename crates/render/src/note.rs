use pleach_tree::{BranchTree, Fidelity, Record, Segment, SegmentId};

use super::ChatTemplate;

/// What rendering changed or could not keep.
#[derive(Debug, Default)]
pub(super) struct Notes {
    dated: bool,
    tokenised: usize,
    token_level: bool,
    /// Whether texts are encoded as one because pieces gave other ids.
    pub(super) whole: bool,
    /// Contexts without a call that the template refuses.
    pub(super) refused: usize,
    /// Operations that only the template asked for.
    pub(super) rewritten: usize,
    /// Outputs that the template does not show whole, and the first text that it loses.
    lost: usize,
    first_lost: Option<String>,
    template: String,
    /// Outputs that the template does not put behind the prompt.
    pub(super) bare_outputs: usize,
    /// Outputs that are encoded apart from the prompt.
    pub(super) retokenised: usize,
    /// Renderings whose characters were assigned by search.
    pub(super) searched: usize,
    /// Segments whose weights per token were dropped.
    pub(super) weights: Vec<SegmentId>,
    same_prompts: usize,
    other_prompts: usize,
}

impl Notes {
    pub(super) fn new(tree: &BranchTree, template: &ChatTemplate) -> Self {
        let tokenised = |record: &&Record| matches!(record, Record::Segment(segment) if segment.tokens.is_some());
        Self {
            dated: template.is_dated(),
            tokenised: tree.records().iter().filter(tokenised).count(),
            token_level: tree.header().fidelity == Fidelity::Token,
            template: template.name().to_owned(),
            ..Self::default()
        }
    }

    /// Counts an output whose text the template does not show whole; `text` is what it loses.
    pub(super) fn lost(&mut self, text: &Segment) {
        self.lost += 1;
        let quoted = || {
            let words = text.text.as_deref().unwrap_or_default();
            let start: String = words.chars().take(40).collect();
            let more = if start.len() < words.len() { " ..." } else { "" };
            format!("{} ({:?}{more})", text.id, start)
        };
        self.first_lost.get_or_insert_with(quoted);
    }

    /// Counts a recorded prompt by whether the rendering is the same.
    pub(super) fn prompts(&mut self, same: bool) {
        *(if same { &mut self.same_prompts } else { &mut self.other_prompts }) += 1;
    }

    /// The notes as sentences, those that do not apply left out.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut out = Vec::new();
        let mut note = |applies: bool, text: String| out.extend(applies.then_some(text));
        let Self {
            tokenised, refused, rewritten, lost, bare_outputs, retokenised, searched, ..
        } = self;
        note(
            *tokenised > 0,
            format!(
                "{tokenised} segments had tokens of their own: some had none, so all were rendered anew from their text"
            ),
        );
        note(
            self.token_level,
            "the records are no longer of fidelity \"token\" but \"message\"".into(),
        );
        note(self.dated, "the chat template prints the date, so another day gives other tokens unless a date is given".into());
        note(
            self.whole,
            "the tokenizer does not keep apart what special tokens separate: every view is encoded as one text".into(),
        );
        note(
            *rewritten > 0,
            format!(
                "the chat template rewrote earlier turns in {rewritten} operations of their own"
            ),
        );
        note(
            *refused > 0,
            format!(
                "{refused} contexts without a call are not rendered: the chat template refuses their messages"
            ),
        );
        note(
            *lost > 0,
            format!(
                "{} does not show all that the policy sampled in {lost} outputs, first of {}: their recorded text stands behind the prompt instead",
                self.template,
                self.first_lost.as_deref().unwrap_or_default()
            ),
        );
        note(
            *bare_outputs > 0,
            format!(
                "{bare_outputs} outputs do not continue their prompt in the chat template's rendering: they were put behind it"
            ),
        );
        note(
            *retokenised > 0,
            format!(
                "{retokenised} outputs were encoded apart from their prompt, with which their first token would have merged"
            ),
        );
        note(
            *searched > 0,
            format!(
                "in {searched} renderings characters were matched to segments by search: a text holds what the template tests"
            ),
        );
        let (same, all) = (self.same_prompts, self.same_prompts + self.other_prompts);
        note(
            all > 0,
            format!(
                "{same} of {all} recorded prompts are what the rendering gives; the others differ"
            ),
        );
        note(
            !self.weights.is_empty(),
            format!(
                "loss weights of {} were dropped: they are per token and its tokens changed",
                list(&self.weights)
            ),
        );
        out
    }
}

fn list(segments: &[SegmentId]) -> String {
    segments.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

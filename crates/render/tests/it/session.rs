//! Sessions made by random actions of a policy, its tools, a person and a harness that evicts.
use pleach_tree::{
    Append, BranchTree, By, ContextId, Evict, Evicted, Evidence, Extra, Fidelity, Fork, ForkReason,
    Generation, GenerationId, Header, Origin, Part, Place, ReadOptions, Record, Replace,
    Replacement, ReplacementKind, Role, Segment, SegmentId, Source, Trigger,
};
use proptest::prelude::*;
use serde_json::json;

/// What happens next in a session.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// A person says something, in parts of one record; each says whether it runs on into the next.
    Ask(Vec<(String, bool)>),
    /// The policy is called.
    Call { reasoning: Option<String>, content: String, calls: Vec<String>, results: Vec<String> },
    /// The harness takes out what the numbers pick and puts something for it.
    Evict { picks: Vec<u8>, with: Option<String>, each: bool, place: u8 },
    /// The harness gives a snapshot of some of the context.
    Snapshot(Vec<u8>),
    /// The session goes back to an earlier context.
    Rewind(u8),
}

fn text() -> impl Strategy<Value = String> {
    let fixed = [
        "",
        "a",
        "\n",
        " ",
        "assistant",
        "user\n",
        "\n\nyes\n",
        "  ünï ",
        "<|im_end|>",
        "{\"a\": 1}",
        "}",
        "<think>\nhm\n</think>\n\nok",
        "<tool_response>\nx\n</tool_response>",
        "\u{f0000}\u{100000}",
        "system",
    ];
    prop_oneof![
        3 => "[a-z]{1,6}( [a-z]{1,6}){0,6}",
        2 => prop::sample::select(fixed.to_vec()).prop_map(str::to_owned),
    ]
}

/// One action of a random session.
pub(crate) fn action() -> impl Strategy<Value = Action> {
    let call = (
        prop::option::of(text()),
        text(),
        prop::collection::vec(text(), 0..3),
        prop::collection::vec(text(), 3),
    );
    prop_oneof![
        2 => prop::collection::vec((text(), any::<bool>()), 1..4).prop_map(Action::Ask),
        5 => call.prop_map(|(reasoning, content, calls, results)| Action::Call { reasoning, content, calls, results }),
        3 => (prop::collection::vec(any::<u8>(), 1..4), prop::option::of(text()), any::<bool>(), 0..4_u8)
            .prop_map(|(picks, with, each, place)| Action::Evict { picks, with, each, place }),
        1 => prop::collection::vec(any::<u8>(), 1..4).prop_map(Action::Snapshot),
        1 => any::<u8>().prop_map(Action::Rewind),
    ]
}

/// Records that grow action by action.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) records: Vec<Record>,
    contexts: Vec<(ContextId, Vec<SegmentId>)>,
    context: Option<ContextId>,
    list: Vec<SegmentId>,
    pending: Vec<SegmentId>,
    segments: u32,
    calls: u32,
}

impl Session {
    pub(crate) fn new() -> Self {
        let header = Record::Header(Header::new("test", Fidelity::Message));
        let mut session = Self {
            records: vec![header],
            contexts: Vec::new(),
            context: None,
            list: Vec::new(),
            pending: Vec::new(),
            segments: 0,
            calls: 0,
        };
        session.say(Role::System, Origin::Harness, "be brief", None);
        session.say(Role::User, Origin::Human, "hello there", None);
        session
    }

    /// The session of some actions; a last call makes sure that there is something to render.
    pub(crate) fn of(actions: &[Action]) -> Self {
        let mut session = Self::new();
        actions.iter().for_each(|action| session.act(action));
        session.act(&Action::Call {
            reasoning: None,
            content: "done".into(),
            calls: vec![],
            results: vec![],
        });
        session
    }

    pub(crate) fn tree(&self) -> BranchTree {
        BranchTree::from_records(self.records.clone(), "session", ReadOptions::STRICT)
            .expect("the session is sound")
            .0
    }

    pub(crate) fn act(&mut self, action: &Action) {
        match action {
            Action::Ask(parts) => {
                let key = format!("q{}", self.segments);
                for (text, open) in parts {
                    self.say(Role::User, Origin::Human, text, Some(key.clone()));
                    self.last().open = *open;
                }
            }
            Action::Call { reasoning, content, calls, results } => {
                self.call(reasoning.as_deref(), content, calls, results)
            }
            Action::Evict { picks, with, each, place } => {
                self.evict(picks, with.as_deref(), *each, *place)
            }
            Action::Snapshot(picks) => self.snapshot(picks),
            Action::Rewind(pick) => self.rewind(*pick),
        }
    }

    /// A segment that waits to be appended.
    fn say(&mut self, role: Role, origin: Origin, text: &str, key: Option<String>) -> SegmentId {
        let id = self.segment(role, origin, text, key);
        self.pending.push(id);
        id
    }

    fn segment(
        &mut self,
        role: Role,
        origin: Origin,
        text: &str,
        key: Option<String>,
    ) -> SegmentId {
        let id = SegmentId(self.segments);
        self.segments += 1;
        let mut segment = Segment::new(id, role, origin).with_text(text);
        segment.source = Some(Source {
            file: 0,
            line: u64::from(id.0) + 1,
            key: key.unwrap_or_else(|| format!("s{}", id.0)),
        });
        self.records.push(Record::Segment(segment));
        id
    }

    fn last(&mut self) -> &mut Segment {
        match self.records.last_mut() {
            Some(Record::Segment(segment)) => segment,
            _ => unreachable!("the last record is a segment"),
        }
    }

    fn flush(&mut self) -> ContextId {
        let segments = std::mem::take(&mut self.pending);
        self.list.extend(&segments);
        let (context, from) = (ContextId(self.contexts.len() as u32), self.context);
        self.records.push(Record::Append(Append { context, from, segments, extra: Extra::new() }));
        self.made(context)
    }

    fn made(&mut self, context: ContextId) -> ContextId {
        self.context = Some(context);
        self.contexts.push((context, self.list.clone()));
        context
    }

    fn call(
        &mut self,
        reasoning: Option<&str>,
        content: &str,
        calls: &[String],
        results: &[String],
    ) {
        let context =
            self.context.filter(|_| self.pending.is_empty()).unwrap_or_else(|| self.flush());
        let id = GenerationId(self.calls);
        self.calls += 1;
        let key = || Some(format!("m{}", id.0));
        let mut output = Vec::new();
        if let Some(reasoning) = reasoning {
            output.push(self.segment(Role::Assistant, Origin::ExternalModel, reasoning, key()));
            self.last().part = Some(Part::Reasoning);
        }
        output.push(self.segment(Role::Assistant, Origin::Policy, content, key()));
        for (index, input) in calls.iter().enumerate() {
            let call = format!("c{}-{index}", id.0);
            let text =
                json!({"id": call, "name": "run", "input": {"command": input, "n": 1}}).to_string();
            output.push(self.segment(Role::Assistant, Origin::Policy, &text, key()));
            (self.last().part, self.last().calls) = (Some(Part::ToolCall), vec![call]);
        }
        self.records.push(Record::Generation(Generation::new(id, context, output.clone())));
        self.pending.extend(output);
        for (index, result) in results.iter().take(calls.len()).enumerate() {
            self.say(Role::Tool, Origin::Environment, result, None);
            self.last().result_of = Some(format!("c{}-{index}", id.0));
        }
    }

    fn evict(&mut self, picks: &[u8], with: Option<&str>, each: bool, place: u8) {
        if !self.pending.is_empty() {
            self.flush();
        }
        let Some(from) = self.context else { return };
        let mut picked: Vec<usize> =
            picks.iter().map(|&pick| pick as usize % self.list.len()).collect();
        picked.sort_unstable();
        picked.dedup();
        picked.retain(|&at| at > 1);
        if picked.is_empty() {
            return;
        }
        let count = if each { picked.len() } else { 1 };
        let segments: Vec<SegmentId> = with.map_or(Vec::new(), |text| {
            (0..count).map(|_| self.segment(Role::User, Origin::Harness, text, None)).collect()
        });
        let place =
            [Place::InPlace, Place::BeforeFirst, Place::AfterKept, Place::Head][place as usize];
        let context = ContextId(self.contexts.len() as u32);
        let evicted: Vec<Evicted> =
            picked.iter().map(|&at| Evicted::whole(self.list[at])).collect();
        self.records.push(Record::Evict(Box::new(Evict {
            context,
            from,
            evicted,
            replacement: with.map(|_| Replacement::new(ReplacementKind::Summary, segments, place)),
            by: Some(By::rule("compact")),
            trigger: Some(Trigger::Auto),
            evidence: Some(Evidence::Recorded),
            extra: Extra::new(),
        })));
        self.reread(context);
    }

    fn snapshot(&mut self, picks: &[u8]) {
        if !self.pending.is_empty() {
            self.flush();
        }
        let Some(from) = self.context else { return };
        let mut segments: Vec<SegmentId> = self.list[..2].to_vec();
        for &pick in picks {
            let id = self.list[pick as usize % self.list.len()];
            if !segments.contains(&id) {
                segments.push(id);
            }
        }
        let context = ContextId(self.contexts.len() as u32);
        self.records.push(Record::Replace(Replace {
            context,
            from,
            segments,
            evidence: None,
            by: None,
            extra: Extra::new(),
        }));
        self.reread(context);
    }

    fn rewind(&mut self, pick: u8) {
        if self.contexts.is_empty() {
            return;
        }
        self.pending.clear();
        let (from, list) = self.contexts[pick as usize % self.contexts.len()].clone();
        self.list = list;
        let context = ContextId(self.contexts.len() as u32);
        self.records.push(Record::Fork(Fork {
            context,
            from,
            reason: ForkReason::Rewind,
            extra: Extra::new(),
        }));
        self.made(context);
    }

    fn reread(&mut self, context: ContextId) {
        let spans = self.tree().spans(context).expect("the context was made");
        self.list = spans.into_iter().map(|span| span.segment).collect();
        self.made(context);
    }
}

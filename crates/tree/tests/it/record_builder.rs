//! Contract: what a builder takes can be read again, and what it refuses changes nothing.
use pleach_tree::{
    BranchTree, By, CacheSemantics, ContextId, Evict, Evicted, Fidelity, ForkReason, Generation,
    GenerationId, Header, LossRun, Origin, Outcome, Place, ReadOptions, RecordBuilder, Replace,
    Replacement, ReplacementKind, Role, Segment, SegmentId, Status, TreeError,
};

fn log() -> RecordBuilder {
    RecordBuilder::new(Header::new("live", Fidelity::Token)).unwrap()
}

fn refusal<T: std::fmt::Debug>(found: Result<T, TreeError>) -> String {
    found.unwrap_err().to_string()
}

#[test]
fn every_kind_of_record_is_written_and_read_again() {
    let mut log = log();
    let task = log.tokens(Role::User, Origin::Human, [1, 2]).unwrap();
    let prompt = log.append(None, [task]).unwrap();
    let said = log.tokens(Role::Assistant, Origin::Policy, [3]).unwrap();
    let call = log.sample(prompt, [said]).unwrap();
    let mut file = Vec::new();
    log.write_new(&mut file).unwrap();
    let next = log.append(prompt, [said]).unwrap();
    let side = log.fork(next, ForkReason::Subagent).unwrap();
    let summary = log.tokens(Role::User, Origin::Harness, [4]).unwrap();
    let replacement = Replacement::new(ReplacementKind::Summary, vec![summary], Place::InPlace);
    let evict = Evict::new(next, [Evicted::range(task, 1, 2)]).with_replacement(replacement);
    let folded = log.evict(evict.with_author(By::policy(call))).unwrap();
    let whole = log.replace(Replace::new(folded, [task])).unwrap();
    let answer = log.tokens(Role::Assistant, Origin::Policy, [5]).unwrap();
    log.generation(Generation::new(GenerationId(0), side, vec![answer]).in_thread("side")).unwrap();
    log.outcome(Outcome::new("r0", "q", 1.0, Status::Finished)).unwrap();
    log.write_new(&mut file).unwrap();
    assert_eq!((folded, whole), (ContextId(3), ContextId(4)));

    let records = log.records().to_vec();
    let (read, report) = BranchTree::read(&file[..], "live.jsonl", ReadOptions::STRICT).unwrap();
    assert_eq!(read.records(), records);
    assert!(report.diagnostics.is_empty(), "{report}");
    let (tree, _) = log.finish().unwrap();
    assert_eq!(tree.spans(folded), read.spans(folded));
    assert_eq!(tree.views().nth(1).unwrap().tokens(), [1, 2, 3, 5]);
}

#[test]
fn a_record_at_fault_is_refused_whole_and_the_next_one_is_taken() {
    let mut log = log();
    let task = log.tokens(Role::User, Origin::Human, [1, 2]).unwrap();
    let prompt = log.append(None, [task]).unwrap();
    let said = log.tokens(Role::Assistant, Origin::Policy, [3]).unwrap();
    let before = log.records().to_vec();

    let error = refusal(log.append(prompt, [said, task]));
    assert!(error.contains("live:5: segments[1]: error[duplicate-identity]"), "{error}");
    let error = refusal(log.append(ContextId(9), [said]));
    assert!(error.contains("error[missing-context]"), "{error}");
    let error = refusal(log.evict(Evict::new(prompt, [Evicted::range(task, 1, 9)])));
    assert!(error.contains("error[range-outside-segment]"), "{error}");
    let error = refusal(log.evict(Evict::new(prompt, [])));
    assert!(error.contains("error[empty-eviction]"), "{error}");
    let error = refusal(log.sample(prompt, [task]));
    assert!(error.contains("error[duplicate-identity]"), "{error}");
    let recorded = Generation {
        prompt_tokens: Some(vec![1]),
        ..Generation::new(GenerationId(0), prompt, vec![said])
    };
    let error = refusal(log.generation(recorded));
    assert!(error.contains("error[prompt-mismatch]"), "{error}");
    let unlike = Segment {
        logprobs: Some(vec![-1.0]),
        ..Segment::new(SegmentId(0), Role::Assistant, Origin::Policy).with_tokens(vec![1, 2])
    };
    let error = refusal(log.segment(unlike));
    assert!(error.contains("error[length-mismatch]"), "{error}");
    assert_eq!(log.records(), before);

    assert_eq!(log.sample(prompt, [said]).unwrap(), GenerationId(0));
    assert_eq!(log.append(prompt, [said]).unwrap(), ContextId(1));
    let (tree, _) = log.finish().unwrap();
    assert_eq!(tree.views().next().unwrap().tokens(), [1, 2, 3]);
}

#[test]
fn a_refused_call_does_not_bind_its_thread_to_a_root() {
    let mut log = log();
    let [one, other] = [1, 2].map(|id| log.tokens(Role::User, Origin::Human, [id]).unwrap());
    let [first, second] = [one, other].map(|prompt| log.append(None, [prompt]).unwrap());
    refusal(log.sample(first, [one]));
    let said = log.tokens(Role::Assistant, Origin::Policy, [3]).unwrap();
    log.sample(second, [said]).unwrap();
    let more = log.tokens(Role::Assistant, Origin::Policy, [4]).unwrap();
    let error = refusal(log.sample(first, [more]));
    assert!(error.contains("error[second-root]"), "{error}");
}

#[test]
fn a_refused_first_token_keeps_its_weight() {
    let mut log = log();
    let nothing = log.append(None, []).unwrap();
    let said = log.tokens(Role::Assistant, Origin::Policy, [3, 4]).unwrap();
    let error = refusal(log.sample(nothing, [said]));
    assert!(error.contains("error[empty-prefix]"), "{error}");
    assert_eq!(log.tree().segment(said).unwrap().loss, None);
}

#[test]
fn under_kv_evict_there_is_one_tape() {
    let header = Header { cache: CacheSemantics::KvEvict, ..Header::new("live", Fidelity::Token) };
    let mut log = RecordBuilder::new(header).unwrap();
    let task = log.tokens(Role::User, Origin::Human, [1]).unwrap();
    let prompt = log.append(None, [task]).unwrap();
    let more = log.tokens(Role::User, Origin::Human, [2]).unwrap();
    log.append(prompt, [more]).unwrap();
    let error = refusal(log.append(prompt, []));
    assert!(error.contains("error[fork-under-kv-evict]"), "{error}");
}

#[test]
fn loss_on_what_nobody_sampled_is_told_at_the_end() {
    let mut log = log();
    let weighted = Segment {
        loss: Some(vec![LossRun { start: 0, end: 1, weight: 1.0 }]),
        ..Segment::new(SegmentId(0), Role::User, Origin::Human).with_tokens(vec![1])
    };
    log.segment(weighted).unwrap();
    assert!(log.finish().unwrap_err().to_string().contains("error[loss-not-sampled]"));
}

#[test]
fn a_log_is_resumed_under_ids_behind_all_of_its_own() {
    let mut first = log();
    let task = first.tokens(Role::User, Origin::Human, [1]).unwrap();
    let prompt = first.append(None, [task]).unwrap();
    let mut again = RecordBuilder::resume(first.into_records()).unwrap();
    let said = again.tokens(Role::Assistant, Origin::Policy, [2]).unwrap();
    assert_eq!((said, again.append(prompt, [said]).unwrap()), (SegmentId(1), ContextId(1)));
    let mut file = Vec::new();
    again.write_new(&mut file).unwrap();
    assert_eq!(String::from_utf8(file).unwrap().lines().count(), 2, "only what is new");

    let mut last = log().into_records();
    let end = Segment::new(SegmentId(u32::MAX), Role::User, Origin::Human).with_tokens(vec![1]);
    last.push(pleach_tree::Record::Segment(end));
    let mut full = RecordBuilder::resume(last).unwrap();
    let error = refusal(full.tokens(Role::User, Origin::Human, [2]));
    assert_eq!(
        error,
        "the ids of segments are used up to 2^32 - 1: number them from 0, or begin another file"
    );
}

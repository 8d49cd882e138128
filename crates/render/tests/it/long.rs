//! Contract: the contexts of a session of any length are, id for id, what the template makes of
//! their messages, also where a long context is rendered by its end alone, and where a template
//! looks at more than that.
use std::path::Path;

use crate::messages::messages;
use crate::tokenizer;

use pleach_render::Renderer;
use pleach_tree::{
    BranchTree, Evict, Evicted, Fidelity, Generation, GenerationId, Header, Origin, Part,
    ReadOptions, RecordBuilder, Role, Segment, SegmentId,
};

const CALLS: usize = 90;

fn template(name: &str) -> Renderer {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    Renderer::bytes().with_template(file).unwrap().on_date("2025-01-02").unwrap()
}

/// A session of many calls, with a question after every `asks` of them and an early result cleared
/// after every `clears`.
fn session(asks: usize, clears: usize) -> BranchTree {
    let mut log = RecordBuilder::new(Header::new("test", Fidelity::Message)).unwrap();
    let source = |key: String| Some(pleach_tree::Source { file: 0, line: 1, key });
    let segment =
        |log: &mut RecordBuilder, role, origin, text: String, edit: &dyn Fn(&mut Segment)| {
            let mut segment = Segment::new(SegmentId(0), role, origin).with_text(text);
            edit(&mut segment);
            log.segment(segment).unwrap()
        };
    let system =
        segment(&mut log, Role::System, Origin::Harness, "Keep the tower.".into(), &|_| {});
    let task = segment(&mut log, Role::User, Origin::Human, "Ring.".into(), &|_| {});
    let mut context = log.append(None, [system, task]).unwrap();
    let mut results = Vec::new();
    for call in 0..CALLS {
        let said = |part, text: String, log: &mut RecordBuilder| {
            segment(log, Role::Assistant, Origin::Policy, text, &|segment| {
                (segment.part, segment.source) = (Some(part), source(format!("m{call}")));
            })
        };
        let thought = said(Part::Reasoning, format!("bell {call}\n"), &mut log);
        let text = said(Part::Content, format!("Ringing {call}."), &mut log);
        let input =
            format!("{{\"id\":\"c{call}\",\"name\":\"ring\",\"input\":{{\"bell\":{call}}}}}");
        let ring = said(Part::ToolCall, input, &mut log);
        log.sample(context, [thought, text, ring]).unwrap();
        let result = segment(
            &mut log,
            Role::Tool,
            Origin::Environment,
            format!("rung {call}"),
            &|segment| {
                (segment.result_of, segment.source) =
                    (Some(format!("c{call}")), source(format!("t{call}")));
            },
        );
        let mut next = vec![thought, text, ring, result];
        results.push(result);
        if call % asks == asks - 1 {
            next.push(segment(
                &mut log,
                Role::User,
                Origin::Human,
                format!("More, {call}."),
                &|_| {},
            ));
        }
        context = log.append(context, next).unwrap();
        if call % clears == clears - 1 {
            context = log.evict(Evict::new(context, [Evicted::whole(results.remove(0))])).unwrap();
        }
    }
    log.sample(context, []).unwrap();
    BranchTree::from_records(log.into_records(), "session", ReadOptions::STRICT).unwrap().0
}

/// A long conversation, and a shorter one with thoughts in its first calls alone, which another
/// question ends.
fn two_conversations() -> BranchTree {
    let mut log = RecordBuilder::new(Header::new("test", Fidelity::Message)).unwrap();
    let mut number = 0;
    for (thread, calls, thoughts, asks) in [("main", 60, 0, false), ("side", 20, 4, true)] {
        let sample = |log: &mut RecordBuilder, context, output: &[SegmentId]| {
            let generation = Generation::new(GenerationId(0), context, output.to_vec());
            log.generation(generation.in_thread(thread)).unwrap();
        };
        let mut key = || {
            number += 1;
            Some(pleach_tree::Source { file: 0, line: number, key: format!("k{number}") })
        };
        let say = |log: &mut RecordBuilder, role, origin, part, text: &str, source| {
            let segment = Segment::new(SegmentId(0), role, origin).with_text(text);
            log.segment(Segment { part, source, ..segment }).unwrap()
        };
        let task = say(&mut log, Role::User, Origin::Human, None, "Ring.", key());
        let mut context = log.append(None, [task]).unwrap();
        for call in 0..calls {
            let (said, asked) = (key(), key());
            let mut output = Vec::new();
            if call < thoughts {
                let part = Some(Part::Reasoning);
                output.push(say(
                    &mut log,
                    Role::Assistant,
                    Origin::Policy,
                    part,
                    "Loud?",
                    said.clone(),
                ));
            }
            output.push(say(&mut log, Role::Assistant, Origin::Policy, None, "Rung.", said));
            sample(&mut log, context, &output);
            let last = asks && call == calls - 1;
            let (role, origin) = match last {
                true => (Role::User, Origin::Human),
                false => (Role::Tool, Origin::Environment),
            };
            output.push(say(&mut log, role, origin, None, "Again.", asked));
            context = log.append(context, output).unwrap();
        }
        sample(&mut log, context, &[]);
    }
    BranchTree::from_records(log.into_records(), "session", ReadOptions::STRICT).unwrap().0
}

#[test]
fn every_conversation_is_checked_where_it_ends_and_not_the_longest_alone() {
    check("qwen.jinja", &template("qwen.jinja"), &two_conversations());
}

fn check(name: &str, renderer: &Renderer, tree: &BranchTree) {
    let records = renderer.render(tree).unwrap().unwrap().records;
    let read = BranchTree::from_records(records, "rendered", ReadOptions::STRICT);
    let (new, _) = read.map_err(|error| error.to_string()).unwrap();
    for generation in tree.generations() {
        let text = renderer.template().render(&messages(tree, generation.context), true).unwrap();
        let expected = renderer.encode(&text).unwrap();
        let view = new.view(generation.id).unwrap();
        let found = &view.tokens()[..view.context().tokens()];
        assert!(found == expected, "{name}: {}", generation.id);
    }
}

#[test]
fn long_contexts_are_the_renderings_of_their_messages() {
    let never = CALLS + 1;
    for (asks, clears) in [(never, never), (7, never), (30, never), (never, 40), (11, 25)] {
        let tree = session(asks, clears);
        check("chatml", &Renderer::bytes(), &tree);
        for name in ["qwen.jinja", "trimming.jinja", "spans.jinja", "early.jinja", "counting.jinja"]
        {
            check(name, &template(name), &tree);
        }
    }
}

#[test]
fn long_contexts_are_the_renderings_of_their_messages_under_every_tokenizer() {
    let chatml = include_str!("../../src/chatml.jinja");
    for (name, made) in [
        ("borders", tokenizer::byte_level(true)),
        ("no borders", tokenizer::byte_level(false)),
        ("first word", tokenizer::first_word()),
    ] {
        let folder = tokenizer::folder(&made, chatml);
        check(name, &Renderer::open(folder.path()).unwrap(), &session(20, CALLS + 1));
    }
}

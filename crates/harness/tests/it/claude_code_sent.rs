//! What of a session a request holds, and where: results of calls whose ids stand twice, messages
//! that no model sampled, attachments, prompts that are recorded whole, text that was queued.

use crate::lines::{boundary, calls, clears, lines, says, summary, user};
use pleach_harness::claude_code::{SessionInput, convert_readers};
use pleach_harness::{Conversion, JumpCause, ReadOptions};
use pleach_tree::{BranchTree, Fidelity, Origin, Role, Segment, Severity};

fn converted(main: &str, others: &[(&str, String)]) -> (Conversion, BranchTree) {
    converted_with(main, others, ReadOptions::STRICT)
}

fn converted_with(
    main: &str,
    others: &[(&str, String)],
    options: ReadOptions,
) -> (Conversion, BranchTree) {
    let input = |listed: &str, text: &str| SessionInput {
        reader: std::io::Cursor::new(text.to_owned()),
        name: listed.into(),
        listed: listed.into(),
    };
    let others: Vec<_> = others.iter().map(|(name, text)| input(name, text)).collect();
    let conversion = convert_readers(input("s.jsonl", main), others, options).unwrap();
    let records = conversion.records.clone();
    let tree = BranchTree::from_records(records, "records", ReadOptions::STRICT).unwrap().0;
    (conversion, tree)
}

/// What each call saw.
fn contexts(tree: &BranchTree) -> Vec<Vec<&Segment>> {
    let seen = tree.generations().map(|generation| {
        let spans = tree.spans(generation.context).unwrap();
        spans.iter().map(|span| tree.segment(span.segment).unwrap()).collect()
    });
    seen.collect()
}

/// The texts that each call saw.
fn texts(tree: &BranchTree) -> Vec<Vec<&str>> {
    contexts(tree)
        .into_iter()
        .map(|context| context.iter().map(|segment| segment.text.as_deref().unwrap()).collect())
        .collect()
}

fn warnings(conversion: &Conversion) -> Vec<String> {
    let all = conversion.report.of(Severity::Warning);
    all.map(|found| format!("{}: {}", found.location, found.fault)).collect()
}

/// The result of a tool call.
fn answer(uuid: &str, parent: &str, call: &str, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"{text}"}}]}}}}"#
    )
}

#[test]
fn a_result_answers_the_newest_open_call_of_its_id() {
    let text = lines([
        user("u", "", "sow"),
        calls("a", "u", "m1", "c1"),
        answer("r", "a", "c1", "beans"),
        user("v", "r", "again"),
        calls("b", "v", "m2", "c1"),
        answer("q", "b", "c1", "peas"),
        says("c", "q", "m3"),
    ]);
    let (conversion, tree) = converted(&text, &[]);
    let call = r#"{"id":"c1","name":"Read","input":{}}"#;
    assert_eq!(texts(&tree)[1], ["sow", call, "beans", "again"]);
    assert_eq!(texts(&tree)[2], ["sow", call, "beans", "again", call, "peas"]);
    assert_eq!(warnings(&conversion), [""; 0]);
}

#[test]
fn every_result_of_an_id_that_is_cleared_leaves() {
    let text = lines([
        user("u", "", "sow"),
        calls("a", "u", "m1", "c1"),
        answer("r", "a", "c1", "beans"),
        calls("b", "r", "m2", "c1"),
        answer("q", "b", "c1", "peas"),
        clears("x", "q", "c1"),
        says("c", "x", "m3"),
    ]);
    let (_, tree) = converted(&text, &[]);
    let cleared = "[Old tool result content cleared]";
    let call = r#"{"id":"c1","name":"Read","input":{}}"#;
    assert_eq!(texts(&tree)[2], ["sow", call, cleared, call, cleared]);
}

/// A message of the model that stands for none.
fn notice(uuid: &str, parent: &str, text: &str, more: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":"{parent}"{more},"message":{{"id":"n-{uuid}","model":"<synthetic>","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

#[test]
fn a_message_that_no_model_sampled_stands_in_the_context_and_is_no_call() {
    let text = lines([
        user("u", "", "sow"),
        notice("n", "u", "Nothing to say.", ""),
        user("v", "n", "go on"),
        says("a", "v", "m1"),
    ]);
    let (conversion, tree) = converted(&text, &[]);
    let seen = &contexts(&tree)[0];
    let seen: Vec<_> = seen.iter().map(|said| (said.role, said.origin)).collect();
    let notice = (Role::Assistant, Origin::Harness);
    assert_eq!(seen, [(Role::User, Origin::Human), notice, (Role::User, Origin::Human)]);
    assert_eq!(texts(&tree), [["sow", "Nothing to say.", "go on"]]);
    assert_eq!(warnings(&conversion), [""; 0]);
}

#[test]
fn an_error_of_the_api_stands_in_no_context_and_a_notice_at_the_end_is_seen_by_nobody() {
    let text = lines([
        user("u", "", "sow"),
        notice("e", "u", "API Error", r#","isApiErrorMessage":true"#),
        says("a", "e", "m1"),
        notice("n", "a", "Nothing to say.", ""),
    ]);
    let (_, tree) = converted(&text, &[]);
    assert_eq!(texts(&tree), [["sow"]]);
}

/// An attachment, with what else its line has.
fn attachment(uuid: &str, parent: &str, data: &str, more: &str) -> String {
    format!(
        r#"{{"type":"attachment","uuid":"{uuid}","parentUuid":"{parent}","attachment":{{{data}}}{more}}}"#
    )
}

#[test]
fn attachments_that_are_shown_to_the_person_only_stand_in_no_context() {
    for kind in [
        "hook_system_message",
        "hook_cancelled",
        "hook_non_blocking_error",
        "hook_error_during_execution",
        "hook_permission_decision",
        "command_permissions",
        "structured_output",
        "already_read_file",
        "edited_image_file",
    ] {
        let data = format!(r#""type":"{kind}","content":"seen by the gardener""#);
        let text =
            lines([user("u", "", "sow"), attachment("h", "u", &data, ""), says("a", "h", "m1")]);
        let (conversion, tree) = converted(&text, &[]);
        assert_eq!(texts(&tree), [["sow"]], "{kind}");
        assert_eq!(warnings(&conversion), [""; 0], "{kind}");
    }
}

#[test]
fn the_output_of_a_hook_that_succeeded_is_sent_where_a_session_starts_or_a_prompt_is_given() {
    for (event, sent) in [
        ("SessionStart", true),
        ("UserPromptSubmit", true),
        ("PostToolUse", false),
        ("Stop", false),
    ] {
        let data = format!(r#""type":"hook_success","hookEvent":"{event}","content":"frost""#);
        let text =
            lines([user("u", "", "sow"), attachment("h", "u", &data, ""), says("a", "h", "m1")]);
        let (_, tree) = converted(&text, &[]);
        assert_eq!(texts(&tree)[0].contains(&"frost"), sent, "{event}");
    }
}

#[test]
fn what_a_line_says_was_sent_of_an_attachment_is_its_text_in_that_role() {
    let data = r#""type":"weather","celsius":3"#;
    let sent = |role: &str, texts: &str| {
        let more = format!(r#","rendered":[{texts}],"renderedRole":"{role}""#);
        let text =
            lines([user("u", "", "sow"), attachment("h", "u", data, &more), says("a", "h", "m1")]);
        let (conversion, tree) = converted(&text, &[]);
        assert_eq!(warnings(&conversion), [""; 0]);
        let context = contexts(&tree).remove(0);
        let seen = context.iter().filter(|segment| segment.source.as_ref().unwrap().key == "h");
        seen.map(|segment| (segment.role, segment.origin, segment.text.clone().unwrap()))
            .collect::<Vec<_>>()
    };
    let of_user = |text: &str| (Role::User, Origin::Harness, text.to_owned());
    assert_eq!(sent("user", r#"{"content":"cold"}"#), [of_user("cold")]);
    let blocks = r#"{"content":[{"type":"text","text":"cold"}]},{"content":"wet"}"#;
    assert_eq!(sent("user", blocks), [of_user("cold"), of_user("wet")]);
    assert_eq!(sent("system", r#"{"content":"cold"}"#)[0].0, Role::System);
    assert_eq!(sent("user", ""), []);
}

#[test]
fn data_that_no_request_showed_is_worded_where_the_words_are_known_and_named_where_they_are_not() {
    let edited = r#""type":"edited_text_file","filename":"/bed","snippet":"1\tpeas""#;
    let text = lines([
        user("u", "", "sow"),
        attachment("h", "u", edited, ""),
        attachment("i", "h", r#""type":"weather","celsius":3"#, ""),
        attachment("j", "i", r#""type":"weather","celsius":4"#, ""),
        says("a", "j", "m1"),
    ]);
    let (conversion, tree) = converted(&text, &[]);
    let seen = &texts(&tree)[0];
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().any(|text| text.contains("Note: /bed was modified")), "{seen:?}");
    assert_eq!(
        warnings(&conversion),
        [
            r#"s.jsonl:2: attachment.type: worded-attachment: attachments of type "edited_text_file" (1) are recorded as data; they stand in the words that the harness is known to use"#,
            r#"s.jsonl:3: attachment.type: unknown-attachment: what was sent of attachments of type "weather" (2) is neither recorded nor known to this adapter; they stand in no context"#,
        ]
    );
}

fn remark(uuid: &str, parent: &str, text: &str) -> String {
    attachment(uuid, parent, &format!(r#""type":"remark","content":"{text}""#), "")
}

#[test]
fn attachments_stand_before_the_prompt_of_their_turn_behind_the_last_result_or_answer() {
    let text = lines([
        remark("s", "", "start").replace(r#""parentUuid":"""#, r#""parentUuid":null"#),
        user("u", "s", "sow"),
        remark("h", "u", "list"),
        calls("a", "h", "m1", "c1"),
        answer("r", "a", "c1", "beans"),
        remark("i", "r", "wet"),
        says("b", "i", "m2"),
        user("v", "b", "on"),
        remark("j", "v", "dry"),
        says("c", "j", "m3"),
    ]);
    let (_, tree) = converted(&text, &[]);
    let call = r#"{"id":"c1","name":"Read","input":{}}"#;
    assert_eq!(
        texts(&tree)[2],
        ["start", "list", "sow", call, "beans", "wet", "said", "dry", "on"]
    );
    assert_eq!(texts(&tree)[0], ["start", "list", "sow"]);
}

#[test]
fn attachments_go_before_a_prompt_that_branches_share_and_behind_what_came_with_a_result() {
    let text = lines([
        user("u", "", "sow"),
        remark("h", "u", "first"),
        says("a", "h", "m1"),
        remark("i", "u", "second"),
        says("b", "i", "m2"),
    ]);
    let (_, tree) = converted(&text, &[]);
    assert_eq!(texts(&tree), [["first", "sow"], ["second", "sow"]]);
    let both = r#"[{"type":"tool_result","tool_use_id":"c1","content":"no"},{"type":"text","text":"stop"}]"#;
    let text = lines([
        user("u", "", "sow"),
        calls("a", "u", "m1", "c1"),
        format!(
            r#"{{"type":"user","uuid":"r","parentUuid":"a","message":{{"role":"user","content":{both}}}}}"#
        ),
        user("v", "r", "on"),
        remark("h", "v", "list"),
        says("b", "h", "m2"),
    ]);
    let (_, tree) = converted(&text, &[]);
    assert_eq!(texts(&tree)[1][2..], ["no", "stop", "list", "on"]);
}

fn snapshot(uuid: &str, parent: &str, system: &str, tools: &str) -> String {
    let tools = if tools.is_empty() { String::new() } else { format!(r#","tools":{tools}"#) };
    let data = format!(r#""type":"prompt_snapshot","systemPrompt":{system}{tools}"#);
    attachment(uuid, parent, &data, "").replace(r#""parentUuid":"""#, r#""parentUuid":null"#)
}

/// A call whose input was counted.
fn counted(line: &str, tokens: u64) -> String {
    line.replace(
        r#","role":"assistant""#,
        &format!(r#","role":"assistant","usage":{{"input_tokens":{tokens}}}"#),
    )
}

const TOOLS: &str = r#"[{"name":"Dig","schema":{"type":"object"}}]"#;
const SENT_TOOLS: &str = r#"[{"name":"Dig","input_schema":{"type":"object"}}]"#;

#[test]
fn a_recorded_prompt_is_the_system_prompt_and_the_tools_from_there_on_and_nothing_is_hidden_then() {
    let text = lines([
        user("u", "", "sow"),
        counted(&says("a", "u", "m1"), 9_000),
        user("v", "a", "on"),
        snapshot("p", "v", r#"["You garden.","Be brief."]"#, ""),
        snapshot("q", "p", r#"["You garden.","Be brief."]"#, TOOLS),
        counted(&says("b", "q", "m2"), 9_100),
        snapshot("r", "b", r#"["You prune.","Be brief."]"#, ""),
        user("w", "r", "go"),
        counted(&says("c", "w", "m3"), 9_200),
    ]);
    let (conversion, tree) = converted(&text, &[]);
    assert_eq!(texts(&tree)[1], [SENT_TOOLS, "You garden.", "Be brief.", "sow", "said", "on"]);
    assert_eq!(
        texts(&tree)[2],
        [SENT_TOOLS, "You prune.", "Be brief.", "sow", "said", "on", "said", "go"]
    );
    let head = contexts(&tree).remove(1);
    assert!(head[..3].iter().all(|segment| segment.role == Role::System));
    assert_eq!(head[0].extra.get("tools"), Some(&true.into()));
    let hidden: Vec<f64> =
        conversion.usage.unwrap().eras.iter().map(|era| era.hidden_tokens).collect();
    assert!(hidden[0] > 0.0 && hidden[1..] == [0.0], "{hidden:?}");
}

#[test]
fn a_compaction_leaves_the_recorded_prompt_at_the_head() {
    let text = lines([
        snapshot("p", "", r#""You garden.""#, TOOLS),
        user("u", "p", "sow"),
        says("a", "u", "m1"),
        boundary("x", r#""a""#, ""),
        summary("s", "x"),
        user("v", "s", "on"),
        says("b", "v", "m2"),
    ]);
    let (_, tree) = converted(&text, &[]);
    assert_eq!(texts(&tree)[0], [SENT_TOOLS, "You garden.", "sow"]);
    assert_eq!(texts(&tree)[1], [SENT_TOOLS, "You garden.", "sum", "on"]);
}

#[test]
fn a_tool_call_has_the_input_that_the_model_wrote() {
    let wrote = |inputs: &str| {
        let call = calls("a", "u", "m1", "c1")
            .replace(r#","message""#, &format!(r#","wireToolInputs":{inputs},"message""#));
        lines([user("u", "", "sow"), call, answer("r", "a", "c1", "out"), says("b", "r", "m2")])
    };
    let (_, tree) = converted(&wrote(r#"{"c1":{"bed": 3},"c2":{}}"#), &[]);
    assert_eq!(texts(&tree)[1][1], r#"{"id":"c1","name":"Read","input":{"bed":3}}"#);
    let (conversion, tree) = converted_with(&wrote("7"), &[], ReadOptions::LENIENT);
    assert_eq!(texts(&tree)[1][1], r#"{"id":"c1","name":"Read","input":{}}"#);
    let repaired: Vec<_> = conversion.report.of(Severity::Repaired).collect();
    assert_eq!(repaired[0].location.to_string(), "s.jsonl:2: wireToolInputs");
}

fn reminder(uuid: &str, parent: &str, text: &str) -> String {
    user(uuid, parent, &format!("<system-reminder>{text}</system-reminder>"))
        .replace(r#""type":"user""#, r#""type":"user","isMeta":true,"isSidechain":true"#)
}

#[test]
fn reminders_that_only_the_summarisers_file_has_stand_behind_their_parents_in_every_call_since() {
    let main = lines([
        user("u", "", "sow"),
        calls("a", "u", "m1", "c1"),
        answer("r", "a", "c1", "beans"),
        calls("b", "r", "m2", "c2"),
        answer("q", "b", "c2", "peas"),
        boundary("x", r#""q""#, ""),
        summary("s", "x"),
        says("c", "s", "m3"),
    ]);
    let summariser = |name: &str, asks: &str, says: &str| {
        lines([
            reminder(&format!("{name}1"), "r", "wet"),
            reminder(&format!("{name}2"), &format!("{name}1"), "cold"),
            reminder(&format!("{name}3"), "q", "late"),
            user(&format!("{name}4"), &format!("{name}3"), asks),
            format!(
                r#"{{"type":"assistant","uuid":"{name}5","parentUuid":"{name}4","message":{{"id":"n{name}","model":"m","role":"assistant","content":"{says}"}}}}"#
            ),
        ])
    };
    let others = [
        ("s/subagents/agent-acompact-1.jsonl", summariser("j", "Sum up.", "sum")),
        ("s/subagents/agent-acompact-2.jsonl", summariser("k", "Sum up!", "none")),
    ];
    let (_, tree) = converted(&main, &others);
    let of = |thread: &str| -> Vec<Vec<&str>> {
        let all = tree.generations().zip(texts(&tree));
        all.filter(|(generation, _)| generation.thread == thread).map(|(_, seen)| seen).collect()
    };
    let [wet, cold, late] =
        ["wet", "cold", "late"].map(|text| format!("<system-reminder>{text}</system-reminder>"));
    let [first, second] =
        ["c1", "c2"].map(|call| format!(r#"{{"id":"{call}","name":"Read","input":{{}}}}"#));
    let behind = ["sow", &first, "beans", &wet, &cold];
    assert_eq!(of("main")[..2], [vec!["sow"], behind.to_vec()]);
    let all = [&behind[..], &[&second, "peas", &late]].concat();
    assert_eq!(of("agent-acompact-1"), [[&all[..], &["Sum up."]].concat()]);
    assert_eq!(of("agent-acompact-2"), [[&all[..], &["Sum up!"]].concat()]);
    assert_eq!(of("main")[2], ["sum"]);
}

fn queue(operation: &str, content: &str, reason: &str) -> String {
    let field = |key: &str, value: &str| match value {
        "" => String::new(),
        value => format!(r#","{key}":"{value}""#),
    };
    let (content, reason) = (field("content", content), field("reason", reason));
    format!(r#"{{"type":"queue-operation","operation":"{operation}"{content}{reason}}}"#)
}

/// A session in which a text is queued while a tool runs, with other lines behind its result.
fn queued<const N: usize>(moves: [String; N], behind: &[String]) -> (Conversion, BranchTree) {
    let start = lines([user("u", "", "sow"), calls("a", "u", "m1", "c1")]);
    let end = lines([answer("r", "a", "c1", "beans")]);
    let behind: String = behind.iter().map(|line| format!("{line}\n")).collect();
    converted(&(start + &lines(moves) + &end + &behind), &[])
}

#[test]
fn queued_text_that_a_turn_took_in_stands_before_the_next_call_and_is_inferred() {
    let moves = [queue("enqueue", "in rows", ""), queue("remove", "", "")];
    let (conversion, tree) = queued(moves, &[says("b", "r", "m2"), user("v", "b", "on")]);
    let last = contexts(&tree).remove(1);
    let text = last.last().unwrap();
    let source = text.source.as_ref().unwrap();
    assert_eq!(texts(&tree)[1][2..], ["beans", "in rows"]);
    assert_eq!((text.origin, source.line, source.key.as_str()), (Origin::Human, 3, "line-3"));
    assert_eq!(tree.header().fidelity, Fidelity::Inferred);
    assert_eq!(
        warnings(&conversion),
        [
            "s.jsonl:4: operation: queued-text: the text was queued while a call ran, taken in by the turn, and is in no line; it stands before the next call, without the words that the harness puts around it"
        ]
    );
}

#[test]
fn queued_text_that_a_line_has_stands_once() {
    let moves =
        || [queue("enqueue", "in rows", ""), queue("remove", "in rows", "absorbed_mid_turn")];
    let data = r#""type":"queued_command","prompt":"in rows","commandMode":"prompt""#;
    let told = [attachment("h", "r", data, ""), says("b", "h", "m2")];
    let (conversion, tree) = queued(moves(), &told);
    assert_eq!(texts(&tree)[1][2..], ["beans", "in rows"]);
    assert_eq!(contexts(&tree)[1][3].origin, Origin::Human);
    assert_eq!((tree.header().fidelity, warnings(&conversion)), (Fidelity::Message, Vec::new()));
    let moves = [queue("enqueue", "in rows", ""), queue("dequeue", "", "")];
    let told = [says("b", "r", "m2"), user("v", "b", "in rows"), says("c", "v", "m3")];
    let (conversion, tree) = queued(moves, &told);
    assert_eq!(texts(&tree)[2][3..], ["said", "in rows"]);
    assert_eq!(warnings(&conversion), [""; 0]);
}

#[test]
fn queued_text_is_that_of_its_movement_and_what_went_elsewhere_is_in_no_context() {
    let moves = [
        queue("enqueue", "one", ""),
        queue("enqueue", "two", ""),
        queue("enqueue", "three", ""),
        queue("enqueue", "four", ""),
        queue("popAll", "one", ""),
        queue("remove", "three", "absorbed_mid_turn"),
        queue("remove", "four", "delivered_to_agent"),
    ];
    let (_, tree) = queued(moves, &[says("b", "r", "m2")]);
    assert_eq!(texts(&tree)[1][2..], ["beans", "three"]);
}

#[test]
fn queued_text_that_cannot_be_told_is_named_as_missing() {
    let missing = "s.jsonl:4: operation: queued-text: text was taken out of the queue, and no line says what became of it; if it was sent, it is missing";
    let moves = [queue("enqueue", "", ""), queue("remove", "", "")];
    let (conversion, tree) = queued(moves, &[says("b", "r", "m2")]);
    assert_eq!(texts(&tree)[1][2..], ["beans"]);
    assert_eq!(warnings(&conversion), [missing]);
    let moves = [queue("enqueue", "in rows", ""), queue("remove", "", "")];
    let (conversion, tree) = queued(moves, &[user("v", "r", "on"), says("b", "v", "m2")]);
    assert_eq!(texts(&tree)[1][2..], ["beans", "on"]);
    assert_eq!(warnings(&conversion), [missing]);
    let moves = [queue("enqueue", "in rows", ""), queue("shuffle", "", "")];
    let (conversion, _) = queued(moves, &[says("b", "r", "m2")]);
    assert_eq!(
        warnings(&conversion),
        [
            r#"s.jsonl:4: operation: unknown-operation: operation "shuffle" of the queue is not known"#
        ]
    );
}

#[test]
fn what_is_hidden_is_never_more_than_a_request_counted_and_a_jump_behind_reasoning_is_named() {
    let mut text = user("u", "", "sow") + "\n";
    let (mut parent, mut size) = ("u".to_owned(), 8_000);
    for at in 0..10 {
        let mut call = calls(&format!("a{at}"), &parent, &format!("m{at}"), &format!("c{at}"));
        if at == 1 {
            let thought = r#""content":[{"type":"thinking","thinking":"Rows."},"#;
            call = call.replace(r#""content":["#, thought);
        }
        let tokens = size + if at > 1 { 15_000 } else { 0 };
        text += &(counted(&call, tokens) + "\n");
        text += &(answer(
            &format!("r{at}"),
            &format!("a{at}"),
            &format!("c{at}"),
            &"seed ".repeat(300),
        ) + "\n");
        (parent, size) = (format!("r{at}"), size + 450);
    }
    let (conversion, _) = converted(&text, &[]);
    let era = conversion.usage.as_ref().unwrap().eras[0].clone();
    assert!((7_000.0..8_000.0).contains(&era.hidden_tokens), "{}", era.hidden_tokens);
    assert_eq!((era.jumps.len(), era.jumps[0].cause), (1, JumpCause::Reasoning));
    let deviates: Vec<_> = warnings(&conversion)
        .into_iter()
        .filter(|found| found.contains("usage-deviates"))
        .collect();
    assert_eq!(deviates.len(), 1, "{deviates:?}");
    assert!(deviates[0].starts_with("s.jsonl:6: message.usage"), "{deviates:?}");
    assert!(deviates[0].ends_with("recorded as a summary and sent in full"), "{deviates:?}");
}

fn thinks(uuid: &str, parent: &str, message: &str, call: &str, transformations: &str) -> String {
    let thought = format!(r#""content":[{{"type":"thinking","thinking":"of {message}"}},"#);
    let changed = format!(r#""input_transformations":{transformations},"role":"assistant""#);
    calls(uuid, parent, message, call)
        .replace(r#""content":["#, &thought)
        .replace(r#""role":"assistant""#, &changed)
}

/// The thinking that each call saw.
fn thoughts(tree: &BranchTree) -> Vec<String> {
    let of = |seen: Vec<&str>| {
        seen.into_iter().filter(|text| text.starts_with("of ")).collect::<Vec<_>>().join(", ")
    };
    texts(tree).into_iter().map(of).collect()
}

#[test]
fn thinking_that_the_api_took_out_of_a_request_is_not_in_its_context_and_may_come_back() {
    let dropped = |paths: &[&str]| {
        let change = |path: &&str| {
            format!(
                r#"{{"type":"thinking_dropped","path":"{path}","reason":"prefix_binding_mismatch"}}"#
            )
        };
        format!("[{}]", paths.iter().map(change).collect::<Vec<_>>().join(","))
    };
    let (first, second) = ("messages.1.content.0", "messages.3.content.0");
    let text = lines([
        snapshot("p", "", r#""You garden.""#, TOOLS),
        user("u", "p", "sow"),
        thinks("a", "u", "m1", "c1", "null"),
        answer("r", "a", "c1", "beans"),
        thinks("b", "r", "m2", "c2", "[]"),
        answer("q", "b", "c2", "peas"),
        thinks("c", "q", "m3", "c3", &dropped(&[first])),
        answer("o", "c", "c3", "corn"),
        thinks("d", "o", "m4", "c4", &dropped(&[first, second])),
        answer("n", "d", "c4", "kale"),
        thinks("e", "n", "m5", "c5", &dropped(&[second])),
    ]);
    let (conversion, tree) = converted(&text, &[]);
    assert_eq!(thoughts(&tree), ["", "of m1", "of m2", "of m3", "of m1, of m3, of m4"]);
    assert_eq!(warnings(&conversion), [""; 0]);
}

#[test]
fn thinking_that_is_not_where_the_api_says_is_all_of_it_or_is_named() {
    let text = |paths: &str| {
        lines([
            user("u", "", "sow"),
            thinks("a", "u", "m1", "c1", "null"),
            answer("r", "a", "c1", "beans"),
            thinks("b", "r", "m2", "c2", paths),
        ])
    };
    let (conversion, tree) =
        converted(&text(r#"[{"type":"thinking_dropped","path":"messages.9.content.0"}]"#), &[]);
    assert_eq!((thoughts(&tree), warnings(&conversion)), (vec!["".into(); 2], Vec::new()));
    let two = r#"[{"type":"thinking_dropped"},{"type":"thinking_dropped"},{"type":"pruned"}]"#;
    let (conversion, tree) = converted(&text(two), &[]);
    assert_eq!(thoughts(&tree), ["", "of m1"]);
    assert_eq!(
        warnings(&conversion),
        [
            r#"s.jsonl:4: message.input_transformations: unknown-transformation: what changes of type "pruned" (1) do to a request is not known to this adapter; contexts are as if there were none"#,
            "s.jsonl:4: message.input_transformations: dropped-thinking: thinking that the API took out of the request (2 of 2 blocks) is not found in it; it stands in the context",
        ]
    );
}

#[test]
fn a_reminder_that_the_thread_has_as_an_attachment_stands_once_whichever_file_is_read_first() {
    let main = lines([user("u", "", "hire"), says("a", "u", "m1")]);
    let agent = lines([
        user("v", "", "sow"),
        calls("b", "v", "m2", "c1"),
        answer("r", "b", "c1", "beans"),
        attachment("h", "r", r#""type":"hook_additional_context","content":["wet"]"#, ""),
        calls("c", "h", "m3", "c2"),
        answer("q", "c", "c2", "peas"),
        boundary("x", r#""q""#, ""),
        summary("s", "x"),
        says("d", "s", "m4"),
    ]);
    let summariser = lines([
        reminder("k1", "r", "wet"),
        reminder("k2", "k1", "cold"),
        user("k3", "q", "Sum up."),
        r#"{"type":"assistant","uuid":"k4","parentUuid":"k3","message":{"id":"n","model":"m","role":"assistant","content":"sum"}}"#.into(),
    ]);
    let others =
        [("s/subagents/agent-acompact-1.jsonl", summariser), ("s/subagents/agent-b.jsonl", agent)];
    let (_, tree) = converted(&main, &others);
    let of = |id: usize| {
        let generation = tree.generations().position(|generation| {
            tree.segment(generation.output[0]).unwrap().source.as_ref().unwrap().key
                == format!("m{id}")
        });
        texts(&tree).remove(generation.unwrap())[2..].join(" ")
    };
    assert_eq!(of(3), "beans wet <system-reminder>cold</system-reminder>");
}

#[test]
fn keys_of_other_lines_may_have_any_type() {
    let other = r#"{"type":"system","subtype":"informational","uuid":"n","parentUuid":"u","operation":3,"reason":{"a":1},"rendered":{},"renderedRole":[]}"#;
    let text = lines([user("u", "", "sow"), other.into(), says("a", "n", "m1")]);
    let (conversion, tree) = converted(&text, &[]);
    assert_eq!((texts(&tree), warnings(&conversion)), (vec![vec!["sow"]], Vec::new()));
}

#[test]
fn clearing_an_attachment_that_was_never_sent_changes_nothing() {
    let silent = r#""type":"already_read_file","filename":"/bed""#;
    let clears = r#"{"type":"system","subtype":"microcompact_boundary","uuid":"x","parentUuid":"i","microcompactMetadata":{"clearedAttachmentUUIDs":["h","i"]}}"#;
    let text = lines([
        user("u", "", "sow"),
        says("a", "u", "m1"),
        attachment("h", "a", silent, ""),
        remark("i", "h", "wet"),
        clears.into(),
        user("v", "x", "on"),
        says("b", "v", "m2"),
    ]);
    let (_, tree) = converted(&text, &[]);
    assert_eq!(texts(&tree)[1], ["sow", "said", "on"]);
}

//! Contract: what a request holds reaches the template as transformers would give it: messages one
//! by one, tools as tools, a prefilled answer as the turn that the answer goes on in.
use std::path::Path;

use pleach_harness::{Input, convert_from};
use pleach_render::Renderer;
use pleach_tree::{BranchTree, ReadOptions};
use serde_json::{Value, json};

/// What each call of a log saw, and what of its answer carries loss.
fn trained(renderer: &Renderer, log: &[Value]) -> Vec<(String, String)> {
    let lines: Vec<String> = log.iter().map(ToString::to_string).collect();
    let input = Input::memory("log.jsonl", (lines.join("\n") + "\n").into(), []);
    let records = convert_from(&input, None, ReadOptions::STRICT).unwrap().records;
    let (tree, _) = BranchTree::from_records(records, "log.jsonl", ReadOptions::STRICT).unwrap();
    let records = renderer.render(&tree).unwrap().unwrap().records;
    let (tree, _) = BranchTree::from_records(records, "rendered", ReadOptions::STRICT).unwrap();
    let of = |view: pleach_tree::View<'_>| {
        let tokens = view.tokens();
        let (context, output) = tokens.split_at(view.context().tokens());
        let weighted = view.output().zip(output).filter(|(token, _)| token.weight == Some(1.0));
        (text(context.iter().copied()), text(weighted.map(|(_, id)| *id)))
    };
    tree.views().map(of).collect()
}

fn text(ids: impl IntoIterator<Item = u32>) -> String {
    let sign = |id| match id {
        256 => '<',
        257 => '>',
        id => char::from(u8::try_from(id).unwrap()),
    };
    ids.into_iter().map(sign).collect()
}

fn answer(text: &str) -> Value {
    json!({"id": "a", "choices": [{"message": {"role": "assistant", "content": text}}]})
}

#[test]
fn neighbouring_messages_of_one_role_stay_two_messages() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let messages = json!([user("Two bells rang."), user("Ring a third.")]);
    let log = [json!({"request": {"messages": messages}, "response": answer("Rung.")})];
    let (context, _) = &trained(&Renderer::bytes(), &log)[0];
    assert_eq!(context, "<user\nTwo bells rang.>\n<user\nRing a third.>\n<assistant\n");
}

#[test]
fn a_prefilled_answer_goes_on_inside_of_its_message() {
    let messages =
        json!([{"role": "user", "content": "Ring."}, {"role": "assistant", "content": "The bell"}]);
    let chat = json!({"request": {"messages": messages, "continue_final_message": true}, "response": answer(" is loud.")});
    let anthropic = json!({"request": {"messages": messages, "max_tokens": 9}, "response": {"id": "a", "type": "message", "content": [{"type": "text", "text": " is loud."}]}});
    for log in [chat, anthropic] {
        let (context, said) = &trained(&Renderer::bytes(), &[log])[0];
        assert_eq!(context, "<user\nRing.>\n<assistant\nThe bell");
        assert_eq!(said, " is loud.>");
    }
    // By itself a last message of the assistant is a turn like any other in a chat completion.
    let log = json!({"request": {"messages": messages}, "response": answer(" is loud.")});
    let (context, _) = &trained(&Renderer::bytes(), &[log])[0];
    assert_eq!(context, "<user\nRing.>\n<assistant\nThe bell>\n<assistant\n");
}

#[test]
fn a_prefilled_answer_ends_where_it_stands_and_not_where_the_template_repeats_it() {
    for prefilled in ["end", "im", ">", "assistant"] {
        let messages = json!([{"role": "user", "content": "Ring."}, {"role": "assistant", "content": prefilled}]);
        let log = json!({"request": {"messages": messages, "continue_final_message": true}, "response": answer(" it.")});
        let (context, said) = &trained(&Renderer::bytes(), &[log])[0];
        assert_eq!(*context, format!("<user\nRing.>\n<assistant\n{prefilled}"));
        assert_eq!(said, " it.>");
    }
}

#[test]
fn tools_reach_a_template_that_takes_them_as_tools() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tools.jinja");
    let renderer = Renderer::bytes().with_template(file).unwrap();
    let tools = json!([{"type": "function", "function": {"name": "toll", "parameters": {}}}]);
    let messages = json!([{"role": "system", "content": "Keep the tower."}, {"role": "user", "content": "Ring."}]);
    let log =
        [json!({"request": {"messages": messages, "tools": tools}, "response": answer("Rung.")})];
    let (context, _) = &trained(&renderer, &log)[0];
    let tool = r#"{"type": "function", "function": {"name": "toll", "parameters": {}}}"#;
    assert_eq!(
        *context,
        format!("<system\nTOOLS {tool};Keep the tower.>\n<user\nRing.>\n<assistant\n")
    );
}

#[test]
fn numbers_of_a_call_stand_as_they_were_written() {
    let arguments = r#"{"wei": 123456789012345678901234567, "x": 1.10, "e": 1E5, "n": [0.5, -3, 1e-07], "d": 1, "d": 2}"#;
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "pay", "arguments": arguments}});
    let answer = json!({"id": "a", "choices": [{"message": {"role": "assistant", "content": "", "tool_calls": [call]}}]});
    let log = [
        json!({"request": {"messages": [{"role": "user", "content": "Pay."}]}, "response": answer}),
    ];
    let (_, said) = &trained(&Renderer::bytes(), &log)[0];
    let written = r#"{"wei": 123456789012345678901234567, "x": 1.10, "e": 1E5, "n": [0.5, -3, 1e-07], "d": 2}"#;
    assert_eq!(
        *said,
        format!("<tool_call>\n{{\"name\": \"pay\", \"arguments\": {written}}}\n</tool_call>>")
    );
}

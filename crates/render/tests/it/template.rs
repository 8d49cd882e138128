//! Contract: a chat template renders here what Hugging Face renders, down to white space, JSON and
//! Python's string methods, and a folder's template is found where Hugging Face finds it.
use std::fs;
use std::path::{Path, PathBuf};

use pleach_render::{ChatTemplate, RenderError, Renderer};
use pleach_tree::{BranchTree, ReadOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::{AddedToken, Tokenizer};

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A folder with a tokenizer of a few words.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let model = WordLevel::builder()
        .vocab([("<unk>".to_owned(), 0)].into_iter().collect())
        .unk_token("<unk>".into())
        .build();
    let mut tokenizer = Tokenizer::new(model.unwrap());
    tokenizer
        .add_special_tokens([
            AddedToken::from("<|im_start|>", true),
            AddedToken::from("<|im_end|>", true),
        ])
        .unwrap();
    tokenizer.save(folder.path().join("tokenizer.json"), false).unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn rendered(renderer: &Renderer) -> String {
    renderer.template().render(&[json!({"role": "user", "content": "hi"})], true).unwrap()
}

#[test]
fn templates_render_as_hugging_face_renders_them() {
    let golden: Value =
        serde_json::from_slice(&fs::read(here("hugging_face.json")).unwrap()).unwrap();
    let messages = golden["messages"].as_array().unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let name = case["template"].as_str().unwrap();
        let source = if name.ends_with(".jinja") {
            fs::read_to_string(here(name)).unwrap()
        } else {
            name.to_owned()
        };
        let source = source.replace("strftime_now(\"%d %b %Y\")", "'02 Jan 2025'");
        let template =
            ChatTemplate::new(&source, &[("bos_token".into(), "<s>".into())], "golden").unwrap();
        let count = usize::try_from(case["messages"].as_u64().unwrap()).unwrap();
        let text =
            template.render(&messages[..count], case["add_generation_prompt"] == true).unwrap();
        assert_eq!(text, case["text"].as_str().unwrap(), "{name}");
    }
}

#[test]
fn constructs_of_templates_mean_what_they_mean_in_jinja2() {
    let golden: Value = serde_json::from_slice(&fs::read(here("jinja2.json")).unwrap()).unwrap();
    let messages = [
        json!({"role": "user", "content": "hello"}),
        json!({"role": "assistant", "content": "ho"}),
    ];
    let mut wrong = Vec::new();
    for case in golden["cases"].as_array().unwrap() {
        let source = case["source"].as_str().unwrap();
        let found = ChatTemplate::new(source, &[], "golden")
            .and_then(|template| template.render(&messages, false))
            .unwrap_or_else(|error| error.to_string());
        if found != case["text"] {
            wrong.push((source.to_owned(), found, case["text"].clone()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_date_is_the_one_that_is_given() {
    let renderer = Renderer::bytes()
        .with_template(here("trimming.jinja"))
        .unwrap()
        .on_date("2024-07-26")
        .unwrap();
    assert!(renderer.template().is_dated());
    assert!(rendered(&renderer).contains("Today: 26 Jul 2024\n"));
    let error = Renderer::bytes().on_date("26 July").unwrap_err();
    assert_eq!(error.to_string(), "\"26 July\" is not a date; write it as YYYY-MM-DD");
}

#[test]
fn a_refused_role_order_names_the_generation_and_its_line() {
    let records = r#"{"t":"header","version":1,"harness":"test","fidelity":"message"}
{"t":"segment","id":0,"role":"user","origin":"human","text":"one"}
{"t":"segment","id":1,"role":"user","origin":"human","text":"two"}
{"t":"append","context":0,"from":null,"segments":[0]}
{"t":"append","context":1,"from":0,"segments":[1]}
{"t":"generation","id":7,"context":1,"output":[]}
"#;
    let (tree, _) =
        BranchTree::read(records.as_bytes(), "roles.jsonl", ReadOptions::STRICT).unwrap();
    let renderer = Renderer::bytes().with_template(here("strict.jinja")).unwrap();
    assert_eq!(
        renderer.render(&tree).unwrap_err().to_string(),
        "roles.jsonl:6: the chat template refuses the messages of generation 7: \
         Conversation roles must alternate user/assistant (line 3 of the template); \
         give a template that takes these roles in this order, or none for the built-in ChatML"
    );
}

#[test]
fn a_template_that_does_not_compile_is_an_error_of_its_file() {
    let error = ChatTemplate::new("{% if %}", &[], "broken.jinja").unwrap_err();
    assert!(
        matches!(&error, RenderError::Template { file, .. } if file == "broken.jinja"),
        "{error}"
    );
}

#[test]
fn a_folder_without_a_template_gets_chatml_and_says_so() {
    let folder = folder(&[("config.json", r#"{"vocab_size": 64}"#)]);
    let renderer = Renderer::open(folder.path()).unwrap();
    assert_eq!(rendered(&renderer), "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
    let identity = renderer.identity();
    assert_eq!(identity.vocab_size, Some(64));
    assert_eq!(identity.sha256.as_ref().map(String::len), Some(64));
    assert_eq!(identity.chat_template_sha256.as_deref(), Some(ChatTemplate::chatml().sha256()));
    let tree = message();
    let notes = renderer.render(&tree).unwrap().unwrap().notes;
    assert!(notes[0].ends_with("has no chat template: the built-in ChatML is used"), "{notes:?}");
}

fn message() -> BranchTree {
    let records = r#"{"t":"header","version":1,"harness":"test","fidelity":"message"}
{"t":"segment","id":0,"role":"user","origin":"human","text":"hi"}
{"t":"append","context":0,"from":null,"segments":[0]}
"#;
    BranchTree::read(records.as_bytes(), "message.jsonl", ReadOptions::STRICT).unwrap().0
}

#[test]
fn a_folder_s_template_is_found_in_each_of_its_places() {
    let config = r#"{"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": "{{ bos_token }}config{{ eos_token }}"}"#;
    let with = |files: &[(&str, &str)]| rendered(&Renderer::open(folder(files).path()).unwrap());
    assert_eq!(with(&[("tokenizer_config.json", config)]), "<s>config</s>");
    assert_eq!(
        with(&[("tokenizer_config.json", config), ("chat_template.jinja", "{{ bos_token }}file")]),
        "<s>file"
    );
    assert_eq!(with(&[("chat_template.json", r#"{"chat_template": "processor"}"#)]), "processor");
    let named = r#"{"chat_template": [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]}"#;
    assert_eq!(with(&[("tokenizer_config.json", named)]), "plain");
}

#[test]
fn another_template_sees_the_special_tokens_of_the_tokenizer() {
    let (tokenizer, template) = (
        folder(&[("tokenizer_config.json", r#"{"bos_token": "<own>"}"#)]),
        TempDir::new().unwrap(),
    );
    fs::write(
        template.path().join("tokenizer_config.json"),
        r#"{"bos_token": "<other>", "eos_token": "<none>"}"#,
    )
    .unwrap();
    let file = template.path().join("chat_template.jinja");
    fs::write(&file, "{{ bos_token }}x{{ eos_token }}").unwrap();
    assert_eq!(
        rendered(&Renderer::open(tokenizer.path()).unwrap().with_template(&file).unwrap()),
        "<own>x"
    );
    assert_eq!(rendered(&Renderer::bytes().with_template(&file).unwrap()), "x");
}

#[test]
fn a_template_that_is_not_utf_8_is_an_error_of_its_file() {
    let folder = folder(&[]);
    let file = folder.path().join("chat_template.jinja");
    fs::write(&file, b"a\xff").unwrap();
    for error in [
        Renderer::open(folder.path()).unwrap_err(),
        Renderer::bytes().with_template(&file).unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            format!(
                "{}: the chat template cannot be used: not UTF-8: invalid utf-8 sequence of 1 bytes from index 1; \
                 give another template, or none for the built-in ChatML",
                file.display()
            )
        );
    }
}

#[test]
fn a_file_that_is_no_tokenizer_is_named() {
    let folder = TempDir::new().unwrap();
    let error = Renderer::open(folder.path()).unwrap_err();
    assert!(
        matches!(&error, RenderError::Io { file, .. } if file.ends_with("tokenizer.json")),
        "{error}"
    );
    fs::write(folder.path().join("tokenizer.json"), "[]").unwrap();
    let error = Renderer::open(folder.path()).unwrap_err();
    assert!(matches!(&error, RenderError::Tokenizer { .. }), "{error}");
}

//! Small tokenizers of every build that treats the edges of a text in a way of its own.
use tempfile::TempDir;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::normalizers::{Lowercase, Prepend, Replace, Sequence};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::whitespace::WhitespaceSplit;
use tokenizers::{AddedToken, NormalizerWrapper, Tokenizer};

const WORDS: &str = "be brief hello there assistant user system yes done the policy said that it ran a command\n\n and\n\nso on\n";

/// A tokenizer in a folder of its own, with the files that Hugging Face would have there.
pub(crate) fn folder(tokenizer: &Tokenizer, template: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    tokenizer.save(folder.path().join("tokenizer.json"), false).unwrap();
    std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    folder
}

fn special(tokenizer: &mut Tokenizer) {
    let tokens = ["<|im_start|>", "<|im_end|>"].map(|text| AddedToken::from(text, true));
    tokenizer.add_special_tokens(tokens).unwrap();
}

fn trained(mut tokenizer: Tokenizer) -> Tokenizer {
    let alphabet = ByteLevel::alphabet().into_iter().collect();
    let trainer = BpeTrainer::builder()
        .vocab_size(420)
        .min_frequency(1)
        .initial_alphabet(alphabet)
        .show_progress(false);
    let mut trainer =
        TrainerWrapper::from(trainer.special_tokens(vec![AddedToken::from("<unk>", true)]).build());
    tokenizer.train(&mut trainer, [WORDS, "\n\n\n", "hello there\n\n"].into_iter()).unwrap();
    tokenizer
}

/// Byte-level BPE as GPT-2 has it: white space merges across the borders of messages.
pub(crate) fn byte_level(with_special: bool) -> Tokenizer {
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    let mut tokenizer = trained(tokenizer);
    if with_special {
        special(&mut tokenizer);
    }
    tokenizer
}

/// A first word is written otherwise than the others, as in newer Llama-2 tokenizers.
pub(crate) fn first_word() -> Tokenizer {
    let mut tokenizer = Tokenizer::new(BPE::builder().unk_token("<unk>".into()).build().unwrap());
    tokenizer.with_pre_tokenizer(Some(Metaspace::new('▁', PrependScheme::First, true)));
    let mut tokenizer = trained(tokenizer);
    special(&mut tokenizer);
    tokenizer
}

/// Every stretch is begun with a sign, and blanks are replaced, before the model sees it as one, as
/// in older Llama-2 tokenizers.
pub(crate) fn prepended() -> Tokenizer {
    let mut tokenizer = trained(Tokenizer::new(BPE::default()));
    let steps =
        [NormalizerWrapper::from(Prepend::new("▁".into())), Replace::new(" ", "▁").unwrap().into()];
    tokenizer.with_normalizer(Some(Sequence::new(steps.into()))).unwrap();
    special(&mut tokenizer);
    tokenizer
}

/// Whole words in lower case, and added tokens that take white space with them, are words, or match
/// after lowering.
pub(crate) fn greedy() -> Tokenizer {
    let words = ["<unk>", "hello", "there", "be", "brief", "assistant", "user", "done", "yes"];
    let vocab = words.iter().zip(0..).map(|(word, id)| ((*word).to_owned(), id)).collect();
    let model = WordLevel::builder().vocab(vocab).unk_token("<unk>".into()).build().unwrap();
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_normalizer(Some(Lowercase)).unwrap();
    tokenizer.with_pre_tokenizer(Some(WhitespaceSplit));
    special(&mut tokenizer);
    let added = [
        AddedToken::from("<think>", false).normalized(false).rstrip(true),
        AddedToken::from("</think>", false).normalized(false).lstrip(true),
        AddedToken::from("a", false).normalized(false).single_word(true),
        AddedToken::from("System", false).normalized(true),
        AddedToken::from("  ", false).normalized(false),
    ];
    tokenizer.add_tokens(added).unwrap();
    tokenizer
}

//! The order of messages and parts.
//!
//! An id begins with twelve hexadecimal digits that count up with time, and these rolled over on 14
//! August 2026. So what was made behind that has smaller ids than what was made before it.
use super::record::WithParts;

/// Digits of an id that count up with time, and the bits that they hold.
const DIGITS: usize = 12;
const BITS: u32 = 48;

/// Puts messages in the order of their times and then of their ids, and the parts of each in the
/// order of theirs; what lacks a time or such an id stays where it is.
pub(super) fn by_time<S>(messages: &mut [(WithParts, S)]) {
    for (message, _) in messages.iter_mut() {
        let id = message.info.id.clone();
        let behind = |part: Option<&str>| behind(&id, part?);
        if message.parts.iter().all(|part| behind(part.id.as_deref()).is_some()) {
            message.parts.sort_by_key(|part| behind(part.id.as_deref()));
        }
    }
    let Some(first) = messages.first().map(|(message, _)| message.info.id.clone()) else { return };
    if messages.iter().any(|(message, _)| message.info.time.created.is_none()) {
        return;
    }
    messages.sort_by(|(a, _), (b, _)| {
        let created = |message: &WithParts| message.info.time.created.unwrap_or_default();
        let id = |message: &WithParts| behind(&first, &message.info.id);
        created(a).total_cmp(&created(b)).then_with(|| id(a).cmp(&id(b)))
    });
}

/// How far an id was made behind another one: less than half of what the digits can count.
fn behind(first: &str, id: &str) -> Option<i64> {
    let shift = u64::BITS - BITS;
    let between = (count(id)? << shift).wrapping_sub(count(first)? << shift);
    Some(between.cast_signed() >> shift)
}

fn count(id: &str) -> Option<u64> {
    let digits = id.split_once('_')?.1.get(..DIGITS)?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_behind_the_roll_over_is_behind_those_before_it() {
        assert_eq!(behind("msg_fffffe000001ab", "msg_000002000001cd"), Some(0x0400_0000));
        assert_eq!(behind("msg_000002000001cd", "prt_fffffe000001ab"), Some(-0x0400_0000));
        assert_eq!(behind("m1", "msg_000002000001cd"), None);
    }
}

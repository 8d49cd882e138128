use super::{Naive, Target};
use burn::tensor::Tensor;

/// An output and its gradients.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) o: Vec<f64>,
    pub(crate) dq: Vec<f64>,
    pub(crate) dk: Vec<f64>,
    pub(crate) dv: Vec<f64>,
}

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    O,
    Dq,
    Dk,
    Dv,
}

impl Part {
    pub(crate) const ALL: [Self; 4] = [Self::O, Self::Dq, Self::Dk, Self::Dv];
    /// The parts that a row computes for itself.
    pub(crate) const OF_QUERIES: [Self; 2] = [Self::O, Self::Dq];
    /// The parts that a key gathers from the rows that see it.
    pub(crate) const OF_KEYS: [Self; 2] = [Self::Dk, Self::Dv];
}

impl Answer {
    pub(crate) fn part(&self, part: Part) -> &[f64] {
        match part {
            Part::O => &self.o,
            Part::Dq => &self.dq,
            Part::Dk => &self.dk,
            Part::Dv => &self.dv,
        }
    }

    /// One part of one token in every head, as bits.
    pub(crate) fn bits(&self, part: Part, problem: &Naive, [row, token]: [usize; 2]) -> Vec<u64> {
        let heads =
            if Part::OF_QUERIES.contains(&part) { problem.heads_q } else { problem.heads_kv };
        let start = |head: usize| ((row * heads + head) * problem.time + token) * problem.head_dim;
        let entries = (0..heads)
            .flat_map(|head| &self.part(part)[start(head)..start(head) + problem.head_dim]);
        entries.map(|x| x.to_bits()).collect()
    }

    /// Asserts that two answers agree to the last bit.
    pub(crate) fn assert_same_bits(&self, context: &str, other: &Self) {
        for part in Part::ALL {
            let (found, expected) = (self.part(part), other.part(part));
            assert_eq!(found.len(), expected.len(), "{context}: {part:?}");
            let differing =
                found.iter().zip(expected).position(|(a, b)| a.to_bits() != b.to_bits());
            assert_eq!(differing, None, "{context}: {part:?} differs at this entry");
        }
    }
}

/// The output and gradients of a tensor implementation of `problem`.
pub(crate) fn differentiate(
    problem: &Naive,
    target: &Target,
    attention: impl Fn([Tensor<4>; 3]) -> Tensor<4>,
) -> Answer {
    let [q, k, v, upstream] = problem.tensors(target);
    let o = attention([q.clone(), k.clone(), v.clone()]);
    let gradients = o.clone().mul(upstream).sum().backward();
    let gradient = |x: &Tensor<4>| values(x.grad(&gradients).expect("every input has a gradient"));
    Answer { dq: gradient(&q), dk: gradient(&k), dv: gradient(&v), o: values(o) }
}

pub(crate) fn values(tensor: Tensor<4>) -> Vec<f64> {
    tensor.try_into_vec_as::<f64>().expect("tensors can be read back")
}

/// Asserts that two answers agree within the target's tolerance, relative to the largest value of
/// each part.
///
/// Inputs are of order 1, and a gradient that is 0 may be the difference of two numbers of that
/// order: a tenth is the least that errors are measured by.
pub(crate) fn assert_close(context: &str, target: &Target, found: &Answer, expected: &Answer) {
    for part in Part::ALL {
        let (found, expected) = (found.part(part), expected.part(part));
        assert_eq!(found.len(), expected.len(), "{context}: {part:?}");
        assert!(
            found.iter().all(|x| x.is_finite()),
            "{context} on {}: {part:?} is not finite",
            target.name
        );
        let largest = expected.iter().fold(0.1f64, |max, x| max.max(x.abs()));
        let error = found.iter().zip(expected).fold(0.0f64, |max, (a, b)| max.max((a - b).abs()));
        let tolerance = target.tolerance();
        assert!(
            error <= tolerance * largest,
            "{context} on {}: {part:?} off by {error:e}",
            target.name
        );
    }
}

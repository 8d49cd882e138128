use super::{Answer, Part, Random, Target, depths};
use burn::tensor::{Tensor, TensorData};

/// One attention problem on the host.
#[derive(Clone)]
pub(crate) struct Naive {
    pub(crate) batch: usize,
    pub(crate) heads_q: usize,
    pub(crate) heads_kv: usize,
    pub(crate) time: usize,
    pub(crate) head_dim: usize,
    pub(crate) ends: Vec<Vec<i32>>,
    pub(crate) positions: Vec<Vec<i32>>,
    pub(crate) window: Option<u32>,
    pub(crate) scale: f64,
    pub(crate) q: Vec<f64>,
    pub(crate) k: Vec<f64>,
    pub(crate) v: Vec<f64>,
    /// The gradient that comes in at the output.
    pub(crate) upstream: Vec<f64>,
}

impl Naive {
    pub(crate) fn random(
        random: &mut Random,
        [heads_q, heads_kv, head_dim]: [usize; 3],
        ends: Vec<Vec<i32>>,
    ) -> Self {
        let (batch, time) = (ends.len(), ends[0].len());
        let (queries, keys) =
            (batch * heads_q * time * head_dim, batch * heads_kv * time * head_dim);
        Self {
            batch,
            heads_q,
            heads_kv,
            time,
            head_dim,
            positions: vec![(0..time as i32).collect(); batch],
            ends,
            window: None,
            scale: 1.0 / (head_dim as f64).sqrt(),
            q: random.values(queries),
            k: random.values(keys),
            v: random.values(keys),
            upstream: random.values(queries),
        }
    }

    /// The same problem for windowed heads, with the depths of the trees as positions.
    pub(crate) fn windowed(mut self, window: u32) -> Self {
        self.positions = self.ends.iter().map(|ends| depths(ends)).collect();
        self.window = Some(window);
        self
    }

    /// Gives a token other numbers in all heads, ten times larger than those of the others.
    pub(crate) fn disturb(&mut self, random: &mut Random, [row, token]: [usize; 2]) {
        let (time, head_dim) = (self.time, self.head_dim);
        let heads = [self.heads_q, self.heads_kv, self.heads_kv, self.heads_q];
        for (x, heads) in
            [&mut self.q, &mut self.k, &mut self.v, &mut self.upstream].into_iter().zip(heads)
        {
            for head in 0..heads {
                let start = ((row * heads + head) * time + token) * head_dim;
                let values = random.values(head_dim).into_iter().map(|x| 10.0 * x);
                x[start..start + head_dim].iter_mut().zip(values).for_each(|(x, value)| *x = value);
            }
        }
    }

    pub(crate) fn visible(&self, row: usize, i: usize, j: usize) -> bool {
        let near = |window: u32| {
            let distance = self.positions[row][i] - self.positions[row][j];
            i64::from(distance) < i64::from(window)
        };
        j <= i && (i as i32) < self.ends[row][j] && self.window.is_none_or(near)
    }

    fn slice<'a>(&self, x: &'a [f64], heads: usize, [row, head, token]: [usize; 3]) -> &'a [f64] {
        let start = ((row * heads + head) * self.time + token) * self.head_dim;
        &x[start..start + self.head_dim]
    }

    fn add(
        &self,
        x: &mut [f64],
        heads: usize,
        [row, head, token]: [usize; 3],
        factor: f64,
        y: &[f64],
    ) {
        let start = ((row * heads + head) * self.time + token) * self.head_dim;
        for (x, y) in x[start..].iter_mut().zip(y) {
            *x += factor * y;
        }
    }

    pub(crate) fn solve(&self) -> Answer {
        let mut answer = Answer {
            o: vec![0.0; self.q.len()],
            dq: vec![0.0; self.q.len()],
            dk: vec![0.0; self.k.len()],
            dv: vec![0.0; self.v.len()],
        };
        for row in 0..self.batch {
            for head in 0..self.heads_q {
                for i in 0..self.time {
                    self.solve_row(row, head, i, &mut answer);
                }
            }
        }
        answer
    }

    fn solve_row(&self, row: usize, head: usize, i: usize, answer: &mut Answer) {
        let (hq, hkv) = (self.heads_q, self.heads_kv);
        let group = head / (hq / hkv);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let keys: Vec<usize> = (0..self.time).filter(|&j| self.visible(row, i, j)).collect();
        if keys.is_empty() {
            return;
        }
        let q = self.slice(&self.q, hq, [row, head, i]);
        let upstream = self.slice(&self.upstream, hq, [row, head, i]);
        let score = |&j: &usize| self.scale * dot(q, self.slice(&self.k, hkv, [row, group, j]));
        let scores: Vec<f64> = keys.iter().map(score).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let dps = keys.iter().map(|&j| dot(upstream, self.slice(&self.v, hkv, [row, group, j])));
        let dps: Vec<f64> = dps.collect();
        let mean: f64 = weights.iter().zip(&dps).map(|(w, dp)| w / sum * dp).sum();
        for ((&j, weight), dp) in keys.iter().zip(&weights).zip(&dps) {
            let p = weight / sum;
            let ds = p * (dp - mean) * self.scale;
            let key = [row, group, j];
            self.add(&mut answer.o, hq, [row, head, i], p, self.slice(&self.v, hkv, key));
            self.add(&mut answer.dv, hkv, key, p, upstream);
            self.add(&mut answer.dq, hq, [row, head, i], ds, self.slice(&self.k, hkv, key));
            self.add(&mut answer.dk, hkv, key, ds, q);
        }
    }

    /// A bound on the summands that make up a part of the answer: what the rounding of one of them
    /// is relative to.
    pub(crate) fn largest_summand(&self, part: Part) -> f64 {
        let largest = |x: &[f64]| x.iter().fold(0.0f64, |max, x| max.max(x.abs()));
        match part {
            Part::O => largest(&self.v),
            Part::Dv => largest(&self.upstream),
            Part::Dq => self.largest_score_gradient() * largest(&self.k),
            Part::Dk => self.largest_score_gradient() * largest(&self.q),
        }
    }

    /// Largest gradient of a visible weight, times the scale.
    fn largest_score_gradient(&self) -> f64 {
        let mut largest = 0.0f64;
        for (row, head) in
            (0..self.batch).flat_map(|row| (0..self.heads_q).map(move |head| (row, head)))
        {
            let group = head / (self.heads_q / self.heads_kv);
            for i in 0..self.time {
                let upstream = self.slice(&self.upstream, self.heads_q, [row, head, i]);
                for j in (0..=i).filter(|&j| self.visible(row, i, j)) {
                    let v = self.slice(&self.v, self.heads_kv, [row, group, j]);
                    let gradient: f64 = upstream.iter().zip(v).map(|(a, b)| a * b).sum();
                    largest = largest.max((gradient * self.scale).abs());
                }
            }
        }
        largest
    }

    pub(crate) fn tensor(&self, x: &[f64], heads: usize, target: &Target) -> Tensor<4> {
        let data = TensorData::new(x.to_vec(), [self.batch, heads, self.time, self.head_dim]);
        Tensor::from_data(data, (&target.device, target.dtype))
    }

    /// q, k, v and the incoming gradient, as constants.
    pub(crate) fn constants(&self, target: &Target) -> [Tensor<4>; 4] {
        let heads = [self.heads_q, self.heads_kv, self.heads_kv, self.heads_q];
        let parts = [&self.q, &self.k, &self.v, &self.upstream];
        std::array::from_fn(|part| self.tensor(parts[part], heads[part], target))
    }

    /// q, k, v as leaves of a graph, and the incoming gradient as a constant.
    pub(crate) fn tensors(&self, target: &Target) -> [Tensor<4>; 4] {
        let [q, k, v, upstream] = self.constants(target);
        [q.require_grad(), k.require_grad(), v.require_grad(), upstream]
    }
}

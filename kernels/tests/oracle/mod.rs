//! Devices to test on, random problems, and attention as plain float64 loops: the definition read literally, with its gradient.
#![allow(dead_code, reason = "each test binary uses its own part")]

use burn::tensor::{DType, Device, Tensor, TensorData};

/// A device and a dtype that it computes in.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) device: Device,
    pub(crate) dtype: DType,
}

impl Target {
    /// Largest error that is allowed, relative to the largest value: a few hundred roundings.
    pub(crate) fn tolerance(&self) -> f64 {
        let epsilon = match self.dtype {
            DType::F64 => f64::EPSILON,
            _ => f64::from(f32::EPSILON),
        };
        256.0 * epsilon
    }
}

/// Every device that is built in, in every dtype that it computes in.
pub(crate) fn targets() -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |name: &str, device: Device, dtypes: &[DType]| {
        for &dtype in dtypes {
            targets.push(Target { name: format!("{name} {dtype:?}"), device: device.clone().autodiff(), dtype });
        }
    };
    #[cfg(feature = "flex")]
    add("flex", Device::flex(), &[DType::F64, DType::F32]);
    #[cfg(feature = "ndarray")]
    #[allow(deprecated, reason = "kept as the second CPU backend to check against")]
    add("ndarray", Device::ndarray(), &[DType::F64, DType::F32]);
    if let Some(device) = wgpu() {
        add("wgpu", device, &[DType::F32]);
    }
    targets
}

/// The wgpu device, or `None` with a note on stderr.
#[cfg(feature = "wgpu")]
pub(crate) fn wgpu() -> Option<Device> {
    static FOUND: std::sync::OnceLock<Option<Device>> = std::sync::OnceLock::new();
    let first = || Device::enumerate(burn::tensor::DeviceType::Wgpu).into_vec().into_iter().next();
    let device = FOUND.get_or_init(first).clone();
    if device.is_none() {
        let required = std::env::var_os("PLEACH_REQUIRE_WGPU").is_some_and(|value| value == "1");
        assert!(!required, "PLEACH_REQUIRE_WGPU=1 but no wgpu adapter was found");
        eprintln!("skipped on wgpu: no adapter on this machine");
    }
    device
}

#[cfg(not(feature = "wgpu"))]
pub(crate) fn wgpu() -> Option<Device> {
    eprintln!("skipped on wgpu: feature `wgpu` is not enabled");
    None
}

/// A small deterministic generator (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Numbers in [-1, 1) that float32 holds exactly, so that every dtype sees the same problem.
    pub(crate) fn values(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| (self.next() >> 44) as f64 / (1u64 << 19) as f64 - 1.0).collect()
    }

    /// Ends of a random tree in depth-first order: the parent of a token is the one before it or one of its ancestors.
    pub(crate) fn tree(&mut self, time: usize) -> Vec<i32> {
        let mut ends = vec![time as i32; time];
        let mut path: Vec<usize> = Vec::new();
        for token in 0..time {
            if token > 0 && self.below(4) == 0 {
                let keep = self.below(path.len() + 1);
                for closed in path.drain(keep..) {
                    ends[closed] = token as i32;
                }
            }
            path.push(token);
        }
        ends
    }

    /// Ends that do not nest, as keys and values evicted in place leave them.
    pub(crate) fn evictions(&mut self, time: usize) -> Vec<i32> {
        (0..time).map(|token| (token + 1 + self.below(time - token)) as i32).collect()
    }
}

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

/// An output and its gradients.
pub(crate) struct Answer {
    pub(crate) o: Vec<f64>,
    pub(crate) dq: Vec<f64>,
    pub(crate) dk: Vec<f64>,
    pub(crate) dv: Vec<f64>,
}

impl Naive {
    pub(crate) fn random(random: &mut Random, [heads_q, heads_kv, head_dim]: [usize; 3], ends: Vec<Vec<i32>>) -> Self {
        let (batch, time) = (ends.len(), ends[0].len());
        let (queries, keys) = (batch * heads_q * time * head_dim, batch * heads_kv * time * head_dim);
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

    fn add(&self, x: &mut [f64], heads: usize, [row, head, token]: [usize; 3], factor: f64, y: &[f64]) {
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

    fn tensor(&self, x: &[f64], heads: usize, target: &Target) -> Tensor<4> {
        let data = TensorData::new(x.to_vec(), [self.batch, heads, self.time, self.head_dim]);
        Tensor::from_data(data, (&target.device, target.dtype))
    }

    /// q, k, v as leaves of a graph, and the incoming gradient as a constant.
    pub(crate) fn tensors(&self, target: &Target) -> [Tensor<4>; 4] {
        [
            self.tensor(&self.q, self.heads_q, target).require_grad(),
            self.tensor(&self.k, self.heads_kv, target).require_grad(),
            self.tensor(&self.v, self.heads_kv, target).require_grad(),
            self.tensor(&self.upstream, self.heads_q, target),
        ]
    }
}

/// The output and gradients of a tensor implementation of `problem`.
pub(crate) fn differentiate(problem: &Naive, target: &Target, attention: impl Fn([Tensor<4>; 3]) -> Tensor<4>) -> Answer {
    let [q, k, v, upstream] = problem.tensors(target);
    let o = attention([q.clone(), k.clone(), v.clone()]);
    let gradients = o.clone().mul(upstream).sum().backward();
    let gradient = |x: &Tensor<4>| values(x.grad(&gradients).expect("every input has a gradient"));
    Answer { dq: gradient(&q), dk: gradient(&k), dv: gradient(&v), o: values(o) }
}

pub(crate) fn values(tensor: Tensor<4>) -> Vec<f64> {
    tensor.try_into_vec_as::<f64>().expect("tensors can be read back")
}

/// Asserts that two answers agree within the target's tolerance, relative to the largest value of each part.
pub(crate) fn assert_close(context: &str, target: &Target, found: &Answer, expected: &Answer) {
    let parts = [
        ("o", &found.o, &expected.o),
        ("dq", &found.dq, &expected.dq),
        ("dk", &found.dk, &expected.dk),
        ("dv", &found.dv, &expected.dv),
    ];
    for (part, found, expected) in parts {
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().all(|x| x.is_finite()), "{context}: {part} is not finite");
        let largest = expected.iter().fold(1e-3f64, |max, x| max.max(x.abs()));
        let error = found.iter().zip(expected).fold(0.0f64, |max, (a, b)| max.max((a - b).abs()));
        let tolerance = target.tolerance();
        assert!(error <= tolerance * largest, "{context} on {}: {part} off by {error:e}", target.name);
    }
}

//! Traversal, page rank, shortest paths, components and triangles of random graphs, hash tables, histograms
//! in global memory.
//!
//! Invariant: as in [`super`]. Results that depend on the order of atomics are not compared; others converge
//! in the launches of a run, whatever the order.

use super::Kernel;
use super::setup::{Setup, approximate, le_bytes, over};
use crate::bench::case::{Array, Check, Noise, Value};

/// A graph whose edges go to near and to random vertices, in both directions; lists are sorted.
struct Graph {
    begins: Vec<i32>,
    from: Vec<i32>,
    targets: Vec<i32>,
}

impl Graph {
    fn new(vertices: usize, degree: usize) -> Self {
        let mut noise = Noise::new(41);
        let mut lists = vec![std::collections::BTreeSet::new(); vertices];
        for v in 0..vertices {
            for _ in 0..degree / 2 {
                let near = noise.word() >> 9 & 3 != 0;
                let step = 1 + (noise.word() >> 7) as usize % if near { 40 } else { vertices - 1 };
                let other = (v + step) % vertices;
                if other != v {
                    lists[v].insert(other as i32);
                    lists[other].insert(v as i32);
                }
            }
        }
        let (mut begins, mut from, mut targets) = (vec![0], Vec::new(), Vec::new());
        for (v, list) in lists.iter().enumerate() {
            targets.extend(list);
            from.resize(targets.len(), v as i32);
            begins.push(targets.len() as i32);
        }
        Self { begins, from, targets }
    }

    /// The largest number of edges from the first vertex to another.
    fn depth(&self) -> usize {
        let mut levels = vec![usize::MAX; self.begins.len() - 1];
        levels[0] = 0;
        let (mut frontier, mut depth) = (vec![0], 0);
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for v in frontier {
                for to in &self.targets[self.begins[v] as usize..self.begins[v + 1] as usize] {
                    if levels[*to as usize] == usize::MAX {
                        levels[*to as usize] = depth + 1;
                        next.push(*to as usize);
                    }
                }
            }
            depth += usize::from(!next.is_empty());
            frontier = next;
        }
        depth
    }
}

fn graph(s: &mut Setup, vertices: usize, degree: usize) -> Graph {
    let graph = Graph::new(vertices, degree);
    s.what(format!("{vertices} vertices, {} edges", graph.targets.len()));
    graph
}

pub(super) const ROWS: &[Kernel] = &[
    Kernel {
        name: "bfs",
        make: |s| {
            let vertices = s.pick(100_000, 2000);
            let graph = graph(s, vertices, 8);
            let depth = graph.depth();
            let begins = s.int_array(graph.begins);
            let targets = s.int_array(graph.targets);
            let start = le_bytes((0..vertices).map(|v| if v == 0 { 0 } else { -1 }));
            let levels = s.array(Array::inout(start, Check::Bytes).restored());
            let queue = s.zeroed_scratch(8 * vertices);
            let sizes = le_bytes((0..depth + 2).map(|level| i32::from(level == 0)));
            let sizes = s.array(Array::inout(sizes, Check::Bytes).restored());
            let count = s.int(vertices);
            s.int(depth + 1);
            for level in 0..=depth as i32 {
                let args = [begins, targets, levels, queue, sizes, Value::S32(level), count];
                s.step("bfs", [128, 1, 1], [128, 1, 1], &args);
            }
        },
    },
    Kernel {
        name: "pagerank",
        make: |s| {
            let vertices = s.pick(100_000, 2000);
            let graph = graph(s, vertices, 12);
            let degrees: Vec<i32> = graph.begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let begins = s.int_array(graph.begins);
            let sources = s.int_array(graph.targets);
            let first = degrees.iter().flat_map(|d| (1.0 / (vertices as f32 * *d as f32)).to_le_bytes());
            let share = s.array(Array::inout(first.collect(), Check::No).restored());
            let degrees = s.int_array(degrees);
            // Sums of some 12 positive terms in five steps: 2^-24 for each.
            let rank = s.output(4 * vertices, approximate(0.0, 1e-5));
            let next = s.scratch(4 * vertices);
            let count = s.int(vertices);
            let damping = s.float(0.85);
            s.int(5);
            for step in 0..5 {
                let (from, to) = if step % 2 == 0 { (share, next) } else { (next, share) };
                let args = [begins, sources, from, degrees, rank, to, count, damping];
                s.step("pagerank", over(vertices, 128), [128, 1, 1], &args);
            }
        },
    },
    Kernel {
        name: "sssp",
        make: |s| {
            let vertices = s.pick(20_000, 1000);
            let graph = graph(s, vertices, 8);
            let edges = graph.targets.len();
            let from = s.int_array(graph.from);
            let to = s.int_array(graph.targets);
            let mut noise = s.noise();
            let weights: Vec<i32> = (0..edges).map(|_| 1 + (noise.word() >> 24) as i32).collect();
            let weights = s.int_array(weights);
            let start = le_bytes((0..vertices).map(|v| if v == 0 { 0 } else { 0x3fff_ffff }));
            let distances = s.array(Array::inout(start, Check::Bytes).restored());
            let count = s.int(edges);
            // A shortest path has at most this many edges here; more steps than that change nothing.
            let steps = 40;
            s.int(steps);
            for _ in 0..steps {
                s.step("sssp", over(edges, 256), [256, 1, 1], &[from, to, weights, distances, count]);
            }
        },
    },
    Kernel {
        name: "components",
        make: |s| {
            let vertices = s.pick(200_000, 2000);
            let mut noise = s.noise();
            let edges = vertices * 3 / 4;
            s.what(format!("{vertices} vertices, {edges} edges"));
            let mut end = || (noise.word() >> 3) as usize % vertices;
            let (from, to): (Vec<i32>, Vec<i32>) = (0..edges).map(|_| (end() as i32, end() as i32)).unzip();
            let from = s.int_array(from);
            let to = s.int_array(to);
            let own = le_bytes(0..vertices as i32);
            let labels = s.array(Array::inout(own, Check::Bytes).restored());
            let [edge_count, count] = s.numbers([edges, vertices]);
            // Each round at least merges every tree with a smaller neighbour; 12 suffice for these graphs.
            for _ in 0..12 {
                s.step("components_hook", over(edges, 256), [256, 1, 1], &[from, to, labels, edge_count]);
                s.step("components_jump", over(vertices, 256), [256, 1, 1], &[labels, count]);
            }
        },
    },
    Kernel {
        name: "triangles",
        make: |s| {
            let vertices = s.pick(30_000, 1000);
            let graph = graph(s, vertices, 16);
            let edges = graph.targets.len();
            s.int_array(graph.begins);
            s.int_array(graph.targets.clone());
            s.int_array(graph.from);
            s.int_array(graph.targets);
            s.zeroed(4, Check::Bytes);
            s.int(edges);
            s.launch(over(edges, 128), [128, 1, 1]);
        },
    },
    Kernel {
        name: "hash_table",
        make: |s| {
            let n = s.pick(500_000, 5000);
            let slots = (3 * n / 2).next_power_of_two();
            s.what(format!("{n} keys, {slots} slots"));
            let mut noise = s.noise();
            let mut key = || 1 + (noise.word() >> 3) as i32 % n as i32;
            let keys: Vec<i32> = (0..n).map(|_| key()).collect();
            let wanted: Vec<i32> = (0..n).map(|_| key()).collect();
            let keys = s.int_array(keys);
            let values = s.bytes(4 * n);
            let wanted = s.int_array(wanted);
            let table = s.zeroed_scratch(4 * slots);
            let sums = s.zeroed_scratch(4 * slots);
            let out = s.output(4 * n, Check::Bytes);
            let [count, mask] = s.numbers([n, slots - 1]);
            let grid = over(n, 256);
            s.step("hash_insert", grid, [256, 1, 1], &[keys, values, table, sums, count, mask]);
            s.step("hash_find", grid, [256, 1, 1], &[wanted, table, sums, out, count, mask]);
        },
    },
    Kernel {
        name: "histogram2d",
        make: |s| {
            let (n, side) = (s.pick(2_000_000, 20_000), 100);
            s.what(format!("{n} pairs in {side} x {side} bins"));
            s.bytes(2 * n);
            s.bytes(2 * n);
            s.zeroed(4 * side * side, Check::Bytes);
            s.numbers([n, side]);
            s.launch(over(n, 256), [256, 1, 1]);
        },
    },
];

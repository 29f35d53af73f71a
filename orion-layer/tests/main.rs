//! The tests of the loop layer, as one program: what they share is compiled once. Each file is a module; `ui.rs`, which runs
//! the compiler, is a program of its own.
mod array_sums;
mod bad_collections;
mod bad_descriptions;
mod bad_loops;
mod bad_relaxed;
mod bad_rules;
mod bad_served;
mod by_hand;
mod check;
mod checkpoints;
mod collections;
mod common;
mod damaged_checkpoints;
mod description;
mod diverged_loops;
mod diverged_values;
mod dynamic;
mod ended;
mod in_order;
mod in_place;
mod in_place_runs;
mod inner_loops;
mod inspect;
mod inspect_lists;
mod kept_plans;
mod lazy_arrays;
mod measured_staleness;
mod memory;
mod npy_files;
mod parallel_for;
mod pictures;
mod random_loops;
mod rebalance;
mod relaxed;
mod relaxed_blocks;
mod relaxed_rows;
mod reports;
mod rows_in_parts;
mod rule_states;
mod schedules;
mod served;
mod served_homes;
mod served_keys;
mod short_of_areas;
mod slices;
mod slices_effects;
mod soundness;
mod sparse_arrays;
mod tail;
mod text_files;
mod text_tables;

#[test]
fn every_file_is_a_module() {
    hectare_testing::every_file_is_a_module(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"), &["ui.rs"]);
}

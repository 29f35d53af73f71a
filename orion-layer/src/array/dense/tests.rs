use super::*;
use crate::run;
use hectare_data::random::Stream;

const SHAPE: [usize; 3] = [7, 5, 3];

fn number([i, j, k]: [usize; 3]) -> u32 {
    (i * 100 + j * 10 + k) as u32
}

/// Layouts that loops leave behind: cut along any dimension, more parts than workers, owners in any order.
fn layouts(workers: usize) -> Vec<Layout> {
    let mut layouts = vec![Layout::even(0, 7, workers)];
    for (dim, extent) in SHAPE.into_iter().enumerate() {
        let mut layout = Layout::even(dim, extent, 2 * workers);
        layout.owners = (0..2 * workers).map(|part| ((part * 7 + dim) % workers) as u32).collect();
        layouts.push(layout);
    }
    layouts
}

/// Runs `check` on an array of [`number`]s in every layout, on one to four workers.
fn in_all_layouts(check: impl Fn(&mut Context<'_>, DistArray<u32, 3>) + Sync) {
    for workers in 1..=4 {
        run(workers, |w| {
            for layout in layouts(workers) {
                let mut array = w.from_fn(SHAPE, number)?;
                array.rearrange(w, Site::here(), &layout)?;
                check(w, array);
            }
            Ok(())
        })
        .unwrap();
    }
}

fn all_indices() -> Vec<[usize; 3]> {
    Window::of_box(&SHAPE.map(|extent| 0..extent)).indices().collect()
}

fn some_box(stream: Stream) -> [Range<usize>; 3] {
    std::array::from_fn(|dim| {
        let bound = SHAPE[dim] as u64 + 1;
        let ends = [0, 1].map(|at| stream.below(2 * dim as u64 + at, bound) as usize);
        ends[0].min(ends[1])..ends[0].max(ends[1])
    })
}

#[test]
fn elements_are_read_by_index_range_and_in_order() {
    in_all_layouts(|w, array| {
        let all: Vec<u32> = all_indices().into_iter().map(number).collect();
        assert_eq!(array.to_vec(w).unwrap(), all);
        for index in all_indices() {
            assert_eq!(array.get(w, index).unwrap(), number(index));
        }
        let mut visited = Vec::new();
        array.for_each(w, |index, element| visited.push((index, element))).unwrap();
        assert_eq!(visited, all_indices().into_iter().map(|i| (i, number(i))).collect::<Vec<_>>());
        let mut local = 0;
        array
            .for_each_local(w, |index, element| {
                assert_eq!(element, number(index));
                local += 1;
            })
            .unwrap();
        assert_eq!(w.all_reduce(local, |a, b| a + b).unwrap(), all.len() as u64);
        for seed in 0..20 {
            let ranges = some_box(Stream::new(seed, "box"));
            let expected: Vec<u32> = Window::of_box(&ranges).indices().map(number).collect();
            assert_eq!(array.read_range(w, ranges).unwrap(), expected);
        }
    });
}

#[test]
fn what_is_written_is_read_and_the_rest_is_kept() {
    in_all_layouts(|w, mut array| {
        let mut model: Vec<u32> = array.to_vec(w).unwrap();
        let place = |[i, j, k]: [usize; 3]| (i * SHAPE[1] + j) * SHAPE[2] + k;
        for seed in 0..5 {
            let ranges = some_box(Stream::new(seed, "written"));
            let values: Vec<u32> =
                (0..Window::of_box(&ranges).len() as u32).map(|v| v + 1000 * seed as u32).collect();
            Window::of_box(&ranges).indices().zip(&values).for_each(|(i, v)| model[place(i)] = *v);
            array.write_range(w, ranges, &values).unwrap();
            assert_eq!(array.to_vec(w).unwrap(), model);
        }
        array.set(w, [6, 4, 2], 9).unwrap();
        model[place([6, 4, 2])] = 9;
        array.write(w, 2..3, &[5; 15]).unwrap();
        model[30..45].fill(5);
        array.for_each_mut(w, |[i, ..], element| *element += i as u32).unwrap();
        all_indices().into_iter().for_each(|index| model[place(index)] += index[0] as u32);
        assert_eq!(array.to_vec(w).unwrap(), model);
        array.fill(w, 3).unwrap();
        assert_eq!(array.to_vec(w).unwrap(), [3; 105]);
    });
}

#[test]
fn arrays_are_made_of_arrays() {
    in_all_layouts(|w, array| {
        let doubled =
            array.map(w, |index, element| (number(index) == element, u64::from(element) * 2).1).unwrap();
        assert_eq!(doubled.layout(), array.layout());
        let expected: Vec<u64> = all_indices().into_iter().map(|i| u64::from(number(i)) * 2).collect();
        assert_eq!(doubled.to_vec(w).unwrap(), expected);
        let odd = array.filter(w, |_, element| element % 2 == 1).unwrap();
        let found: Vec<u32> = odd.to_vec(w).unwrap().into_iter().map(|entry| entry.value).collect();
        let expected: Vec<u32> = all_indices().into_iter().map(number).filter(|n| n % 2 == 1).collect();
        assert_eq!((odd.shape(), found), (SHAPE, expected));
        for (dim, extent) in SHAPE.into_iter().enumerate() {
            let permuted = array.permute(w, dim, 11).unwrap();
            let permutation = w.permutation(extent, 11);
            for index in all_indices() {
                let mut to = index;
                to[dim] = permutation.apply(index[dim] as u32) as usize;
                assert_eq!(permuted.get(w, to).unwrap(), number(index));
            }
        }
    });
}

#[test]
fn runs_are_whole_rows_in_order() {
    in_all_layouts(|w, array| {
        let mut all = Vec::new();
        array
            .for_each_run(w, |run| {
                assert!(run.len().is_multiple_of(SHAPE[2]));
                all.extend_from_slice(run);
                Ok(())
            })
            .unwrap();
        assert_eq!(all, array.to_vec(w).unwrap());
    });
}

#[test]
fn subscripts_outside_are_errors_with_array_subscript_and_worker() {
    run(2, |w| {
        let mut a = w.zeros::<f32, 2>([4, 3])?.named("weights");
        let me = w.rank();
        let said = |result: Result<()>| result.unwrap_err().to_string();
        assert_eq!(
            said(a.get(w, [4, 0]).map(drop)),
            format!("array \"weights\": worker {me} reads [4, 0], outside of the shape [4, 3]")
        );
        assert_eq!(
            said(a.read_range(w, [0..4, 2..4]).map(drop)),
            format!("array \"weights\": worker {me} reads [0..4, 2..4], outside of the shape [4, 3]")
        );
        // A name that was not given says itself that it is an array's.
        let unnamed = w.zeros::<u8, 1>([4])?;
        let text = said(unnamed.get(w, [9]).map(drop));
        assert!(text.starts_with("array 2 (") && !text.contains('"'), "{text}");
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = a.read_range(w, [3..2, 0..1]);
        assert!(said(backwards.map(drop)).contains("reads [3..2, 0..1]"));
        assert!(said(a.set(w, [0, 3], 1.0)).contains("writes [0..1, 3..4], outside of the shape [4, 3]"));
        assert!(said(a.set(w, [usize::MAX, 0], 1.0)).contains("outside of the shape"));
        assert!(said(a.write(w, 3..5, &[0.0; 6])).contains("writes [3..5, 0..3]"));
        assert!(said(a.write(w, 3..4, &[0.0; 4])).contains("4 values for the 3 elements of [3..4, 0..3]"));
        assert!(said(a.permute(w, 2, 0).map(drop)).contains("dimension 2 of the shape [4, 3]"));
        // Nothing of this was written, and the array still works.
        a.set(w, [3, 2], 2.0)?;
        assert_eq!(a.to_vec(w)?.iter().sum::<f32>(), 2.0);
        Ok(())
    })
    .unwrap();
}

#[test]
fn shapes_that_make_no_sense_are_refused() {
    run(2, |w| {
        for shape in [[usize::MAX, 2], [0, usize::MAX], [1 << 40, 1 << 21]] {
            let error = w.zeros::<f64, 2>(shape).unwrap_err().to_string();
            assert!(error.contains("more bytes than this machine can address"), "{error}");
        }
        assert!(w.zeros::<f64, 0>([]).is_err());
        assert!(w.from_slice([2, 2], &[1.0f32; 5]).unwrap_err().to_string().contains("5 values"));
        assert!(w.normal::<f32, 1>([3], f64::NAN, 0).is_err());
        assert!(w.uniform::<f32, 1>([3], 1.0..1.0, 0).is_err());
        assert!(w.range(5..5)?.is_empty());
        assert_eq!(w.range(i64::MAX - 3..i64::MAX)?.to_vec(w)?, [i64::MAX - 3, i64::MAX - 2, i64::MAX - 1]);
        assert!(w.range(i64::MIN..i64::MAX).unwrap_err().to_string().contains("more bytes than"));
        assert!(w.zeros::<f64, 2>([0, 5])?.to_vec(w)?.is_empty());
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_array_that_cannot_be_filled_leaves_nothing_behind() {
    run(3, |w| {
        let areas = |w: &mut Context<'_>| w.worker().job().areas().unwrap().len();
        let before = areas(w);
        w.barrier()?;
        let me = w.rank();
        let made = DistArray::<f32, 1>::make(w, Site::here(), [9], |_, _| match me {
            1 => Err(Error::Invalid("no data".into())),
            _ => Ok(()),
        });
        assert_eq!(made.unwrap_err().to_string(), "no data");
        w.barrier()?;
        assert_eq!(areas(w), before);
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_array_that_is_cut_anew_costs_its_size_once() {
    run(3, |w| {
        let mut array = w.from_fn([3000, 40], |[i, j]| (i * j) as f32)?;
        for layout in [Layout::even(1, 40, 6), Layout::even(0, 3000, 3), Layout::even(1, 40, 2)] {
            let mut layout = layout;
            layout.owners = (0..layout.parts()).map(|part| part as u32 % 3).collect();
            array.rearrange(w, Site::here(), &layout)?;
            w.barrier()?;
            let areas = w.worker().job().areas()?;
            let parts: Vec<_> = areas.into_iter().filter(|area| area.name.starts_with("orion/1/")).collect();
            assert_eq!(parts.len(), layout.parts());
            let footprint: u64 = parts.iter().map(|area| area.footprint).sum();
            assert!(footprint <= 3000 * 40 * 4 + 8192 * layout.parts() as u64, "{footprint}");
            w.barrier()?;
        }
        Ok(())
    })
    .unwrap();
}

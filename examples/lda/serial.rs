//! The serial twins: the loops that one would write without Hectare.
use super::training::Curve;
use super::{ADVICE, Corpus, MEASURE, Options, Plain, numbers, sampler, uniform, warp};
use hectare::orion::Result;

/// Gibbs sampling, token by token in the given order.
pub(crate) fn serial(
    o: &Options,
    corpus: &Corpus,
    order: &[usize],
    seen: &mut dyn FnMut(&Plain),
) -> Result<Curve> {
    let (sampler, mut model) = (sampler(o, corpus), Plain::new(o, corpus));
    let mut curve = Curve::of(MEASURE, ADVICE).against(uniform(corpus)).after(corpus.passes_before());
    for pass in corpus.passes_before()..corpus.passes_before() + o.passes() {
        curve.begin();
        let numbers = numbers(o, pass);
        for number in order {
            let random = numbers.bits(*number as u64);
            let ([doc, word, totals], pair) = model.rows(corpus.train[*number], *number);
            let old = usize::from(pair[0]);
            let new = sampler.draw(doc, word, totals, old, random);
            totals[old] -= 1;
            totals[new] += 1;
            *pair = [new as u16; 2];
        }
        curve.end();
        seen(&model);
        if !curve.push(&o.run, None, model.perplexity(corpus, &sampler), None)? {
            break;
        }
    }
    Ok(curve)
}

/// WarpLDA, the bits of any number of workers. `seen` gets the counts after each pass.
pub(crate) fn serial_warp(o: &Options, corpus: &Corpus, seen: &mut dyn FnMut(&Plain)) -> Result<Curve> {
    let (sampler, mut twin) = (sampler(o, corpus), warp::Twin::new(o, corpus));
    let mut curve = Curve::of(MEASURE, ADVICE).against(uniform(corpus)).after(corpus.passes_before());
    for pass in corpus.passes_before()..corpus.passes_before() + o.passes() {
        curve.begin();
        twin.pass(o, warp::numbers(o, pass));
        curve.end();
        let model = twin.counts(o, corpus);
        seen(&model);
        if !curve.push(&o.run, None, model.perplexity(corpus, &sampler), None)? {
            break;
        }
    }
    Ok(curve)
}

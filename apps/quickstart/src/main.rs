//! The README's first program: matrix factorization on two workers, and why its loop runs as it does.
use hectare::orion::{Result, axpy, dot, parallel_for};

fn main() -> Result<()> {
    hectare::run(2, |w| {
        // Stars that users gave to films, and eight numbers for each user and each film.
        let stars = |k| ([k % 600, k * 7 % 401], 1.0 + (k % 5) as f32);
        let ratings = w.entries([600, 401], 100_000, stars)?.named("ratings");
        let mut users = w.uniform([600, 8], 0.0..0.5f32, 1)?.named("users");
        let mut films = w.uniform([401, 8], 0.0..0.5f32, 2)?.named("films");
        for pass in 1..=5 {
            let squares = parallel_for!(w, unordered, read ratings, write [users, films], sum squares: f64;
            for ((user, film), stars) in ratings {
                let (a, b) = (users.row_mut(user), films.row_mut(film));
                let error = stars - dot(a, b);
                axpy(0.01 * error, b, a);
                axpy(0.01 * error, a, b);
                squares += (error * error) as f64;
            })?;
            w.root(|| println!("pass {pass}: RMSE {:.4}", (squares / 100_000.0).sqrt()));
        }
        w.root(|| println!("{}", w.explain()));
        Ok(())
    })?;
    Ok(())
}

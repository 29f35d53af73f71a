//! Data that is read and data that is generated.
use crate::matrix_completion::data::{DataSet, Rating, RawRating};
use crate::matrix_completion::generate::{Size, generate};
use crate::matrix_completion::read;
use crate::support::SMALL;
use std::collections::HashSet;

#[test]
fn generated_data_has_its_size_and_a_seed_repeats_it() {
    let ratings = generate(SMALL, 1);
    assert_eq!(ratings.len(), SMALL.ratings);
    assert_eq!(ratings, generate(SMALL, 1));
    assert_ne!(ratings, generate(SMALL, 2));
    let pairs: HashSet<_> = ratings.iter().map(|rating| (rating.user, rating.item)).collect();
    assert_eq!(pairs.len(), ratings.len(), "no user rates an item twice");
    let users: HashSet<_> = ratings.iter().map(|rating| rating.user).collect();
    assert_eq!(users.len(), SMALL.users, "each user rates something");
    assert!(ratings.iter().all(|rating| (1.0..=5.0).contains(&rating.value) && rating.value.fract() == 0.0));

    let mut degrees = vec![0; SMALL.items];
    ratings.iter().for_each(|rating| degrees[rating.item as usize] += 1);
    degrees.sort();
    assert!(degrees[SMALL.items - 1] > 3 * degrees[SMALL.items / 2], "popular items: {degrees:?}");

    // All that there is to rate.
    let full = generate(Size { users: 5, items: 4, ratings: 20 }, 1);
    assert_eq!(full.iter().map(|rating| (rating.user, rating.item)).collect::<HashSet<_>>().len(), 20);
}

#[test]
fn formats_are_found_by_looking() {
    let raw = |user, item, value| RawRating { user, item, value };
    let expected = [raw(7, 1_000_000_000_000, 4.5), raw(8, 20, 3.0)];
    for text in [
        "7::1000000000000::4.5::978300760\n8::20::3::978302109\n",
        "7,1000000000000,4.5\n8,20,3\n",
        "userId,movieId,rating,timestamp\r\n7,1000000000000,4.5,11\r\n8,20,3.0,12\r\n",
        "\u{feff}\"user\",\"item\",\"rating\"\n\"7\",\"1000000000000\",\"4.5\"\n\"8\",\"20\",\"3\"\n",
        "7;1000000000000;4.5\n8;20;3\n",
        "7\t1000000000000\t4.5\t881250949\n8\t20\t3\t881250949",
        "user\titem\trating\n7\t1000000000000\t4.5\n8\t20\t3",
        "7 1000000000000 4.5\n\n  8  20   3  \n",
    ] {
        let text = text.trim_start_matches('\u{feff}');
        assert_eq!(read::parse(text).unwrap(), expected, "{text:?}");
    }
}

#[test]
fn unknown_users_and_items_are_predicted_by_the_mean() {
    let raw = |user, item, value| RawRating { user, item, value };
    let data =
        DataSet::new(&[raw(900, 5, 2.0), raw(3, 5, 4.0)], &[raw(3, 5, 5.0), raw(4, 5, 1.0), raw(3, 6, 3.5)]);
    let data = data.unwrap();
    assert_eq!((data.users, data.items, data.mean), (2, 1, 3.0));
    assert_eq!(data.test, [Rating { user: 1, item: 0, value: 2.0 }]);
    assert_eq!(data.test_unseen, [-2.0, 0.5]);
}

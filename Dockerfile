# The daemon and the command line of Hectare, and the main job to try them with.
#
#     docker build -t hectare .
#     docker run --rm hectare matrix_completion
#     docker run --rm hectare sh -c 'hectared & sleep 1; hectare run -n 2 -- matrix_completion --quiet'
#
# Jobs are in memory of their own (memfd): what limits them is `--memory`, not `--shm-size`. The project's tests do not build
# this image.
FROM rust:1.95.0-slim-bookworm AS build
# The image's own: rust-toolchain.toml names what tests need besides, which rustup would load.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p hectare-daemon -p matrix_completion --bins

FROM debian:bookworm-slim
# The first process of a container has to look after those whose parents have ended.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home hectare
COPY --from=build /src/target/release/hectare /src/target/release/hectared /src/target/release/matrix_completion /usr/local/bin/
COPY --from=build /src/LICENSE-MIT /src/LICENSE-APACHE /usr/local/share/doc/hectare/
USER hectare
# A run directory of the user's own. For other users, and with --read-only, it is to be elsewhere: -e HECTARE_RUN_DIR=/tmp/hectare
# --tmpfs /tmp.
ENV HECTARE_RUN_DIR=/home/hectare/run
ENTRYPOINT ["tini", "--"]
CMD ["hectared"]

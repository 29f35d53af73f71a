# The daemon and the command line of Hectare, and the main job to try them with.
#
#     docker build -t hectare .
#     docker run --rm --shm-size 1g hectare matrix_completion
#     docker run --rm --shm-size 1g hectare sh -c 'hectared & sleep 1; hectare run -n 2 -- matrix_completion --quiet'
#
# The project's tests do not build this image.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p hectare-daemon -p matrix_completion --bins

FROM debian:bookworm-slim
RUN useradd --create-home hectare
COPY --from=build /src/target/release/hectare /src/target/release/hectared /src/target/release/matrix_completion /usr/local/bin/
COPY --from=build /src/LICENSE-MIT /src/LICENSE-APACHE /usr/local/share/doc/hectare/
USER hectare
# A run directory of the user's own; without /run/user it would be in /tmp.
ENV HECTARE_RUN_DIR=/home/hectare/run
CMD ["hectared"]

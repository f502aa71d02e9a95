# hark for NVIDIA GPUs, from this source tree's commit; the host needs a driver of version 580 or newer:
#   docker build -f packages/docker/cuda.Dockerfile -t hark:cuda .
#   docker run --rm --gpus all -v "$PWD:/data" hark:cuda hark transcribe talk.mp3 --model demo
FROM nvidia/cuda:13.0.1-devel-ubuntu22.04 AS cuda

FROM debian:bookworm AS build
WORKDIR /src
COPY . .
COPY --from=cuda /usr/local/cuda /usr/local/cuda
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates git && \
    packages/build.sh --cuda --build /build/hark /out && \
    mkdir /root/hark && \
    tar -C /root/hark --strip-components=1 -xf /out/hark-*-cuda*.tar.gz

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="hark" \
      org.opencontainers.image.description="speech to text to language model" \
      org.opencontainers.image.licenses="MIT"
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates curl jq && \
    rm -rf /var/lib/apt/lists/* && \
    useradd --uid 10001 --create-home hark && \
    install -d -o hark /data /models
COPY --from=build /root/hark /opt/hark
# Models are kept in the volume /models, recordings are in /data.
ENV PATH=/opt/hark/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    XDG_DATA_HOME=/models \
    LC_ALL=C.UTF-8
USER 10001
WORKDIR /data
CMD ["hark", "--help"]

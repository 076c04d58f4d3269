# One image for the API and for its workers. TORCH_INDEX picks the build of torch and triton: leave it empty for the
# default one, or give the index of a ROCm or CPU build.
FROM python:3.11-slim

ARG TORCH_INDEX=""

RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap gcc git libc6-dev \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home wavesmith \
 && mkdir /data && chown wavesmith /data

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY agent agent
COPY api api
COPY prompts prompts
COPY sandbox sandbox
COPY skills skills
RUN pip install --no-cache-dir --constraint constraints.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} ".[triton,github]" \
 && rm -rf /src/*

USER wavesmith
WORKDIR /data
ENV WAVESMITH_DATA_DIR=/data PYTHONUNBUFFERED=1
VOLUME /data
ENTRYPOINT ["wavesmith"]
CMD ["serve"]

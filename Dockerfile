# hadolint global ignore=DL3006,DL3008,DL3013,SC2086
# `repro` in a container, on a CPU or with DEVICE=cuda on NVIDIA GPUs:
#
#   docker build -t repro .
#   docker build -t repro:cuda --build-arg DEVICE=cuda .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" repro run deepseekmath-grpo
#   docker run --rm --gpus all --user "$(id -u):$(id -g)" -v "$PWD:/work" repro:cuda doctor
#
# Records and reports go to the folder that is mounted at /work; mounted there, a checkout of this
# repository brings its own. `docker run repro doctor` says which sandbox works in a container.
# What of this has been run stands in CONTRIBUTING.md under PyTorch.
ARG DEVICE=cpu
ARG TORCH=torch==2.13.0

FROM python:3.12-slim-bookworm AS cpu
# The builds without NVIDIA's libraries.
ENV INDEX=https://download.pytorch.org/whl/cpu

FROM nvidia/cuda:13.0.1-base-ubuntu24.04 AS cuda
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
# The wheels for Linux there bring CUDA, that of 2.13.0 CUDA 13.0. For an older driver give TORCH
# (any from 2.8 on), TORCH_INDEX, or both.
ENV INDEX=https://pypi.org/simple

FROM ${DEVICE}
# What contains the programs that models write.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap libseccomp2 \
    && rm -rf /var/lib/apt/lists/*
# Whoever runs it may write where libraries keep what they load, and where records go.
RUN python3 -m venv /opt/venv \
    && useradd --create-home repro \
    && install -d -m 1777 /home/repro /work
ENV PATH=/opt/venv/bin:$PATH HOME=/home/repro USER=repro PIP_NO_CACHE_DIR=1
WORKDIR /opt/repro
# PyTorch, dependencies, code: each is installed again only where it changes, or what is above it.
ARG TORCH
ARG TORCH_INDEX
RUN pip install --index-url "${TORCH_INDEX:-$INDEX}" "$TORCH"
ARG EXTRAS="peft wandb"
COPY pyproject.toml constraints.txt ./
RUN python -c "import sys, tomllib; \
project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
extras = project['optional-dependencies']; \
needed = project['dependencies'] + [line for extra in sys.argv[1:] for line in extras[extra]]; \
print(*(line for line in needed if not line.startswith('torch>')), sep='\n')" $EXTRAS \
    > requirements.txt \
    && grep -v '^torch==' constraints.txt > others.txt \
    && pip install -c others.txt -r requirements.txt
COPY . .
RUN pip install --no-deps . && rm -r build ./*.egg-info
USER repro
WORKDIR /work
ENTRYPOINT ["repro"]
CMD ["--help"]

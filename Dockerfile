# Image of `kubist serve`. Build and run it:
#
#   docker build -t kubist .
#   docker run --name kubist -p 127.0.0.1:6443:6443 -v kubist:/data kubist
#   docker exec kubist kubist kubeconfig > kubeconfig
#
# The root file system can be read-only: all data is in /data, temporary files are in /tmp.

FROM python:3.13-slim AS build
ARG EXTRAS=etcd,secretbox
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv --without-pip /opt/kubist \
    && python -m pip --python /opt/kubist/bin/python install \
        --no-cache-dir --disable-pip-version-check --prefer-binary ".[${EXTRAS}]"

FROM python:3.13-slim
RUN useradd --uid 65532 --home-dir /data --no-create-home --shell /usr/sbin/nologin kubist \
    && install --directory --owner=kubist --group=kubist --mode=0700 /data
COPY --from=build /opt/kubist /opt/kubist
# XDG_DATA_HOME: commands find the server's data without a flag, in /data/kubist.
ENV PATH=/opt/kubist/bin:$PATH \
    XDG_DATA_HOME=/data \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 6443
HEALTHCHECK --interval=10s --timeout=8s --start-period=30s --retries=3 CMD ["kubist", "status"]
ENTRYPOINT ["kubist"]
CMD ["serve", "--bind-address=0.0.0.0"]
